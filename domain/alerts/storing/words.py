"""The words of an alert: what each further event may change, and the SQL that changes it.

The latest words win. What an event leaves out stays as it was: a report without a title is not
called "New: Alert", and one without a severity does not make an alert critical that was low.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from domain.alerts.reading.incoming import IncomingAlert

#: What stands in the activity when it changes; a trigger sees to that (migration 0017).
SHOWN = ("severity", "title", "description", "service", "monitoring_tool", "hosts", "query")
#: With what goes with them.
COLUMNS = (*SHOWN, "severity_reason")


@dataclass(frozen=True, slots=True)
class Words:
    """The columns that an event says something about, each None if it says nothing."""

    severity: int | None
    severity_reason: str | None
    title: str | None
    description: str | None
    service: str | None
    monitoring_tool: str | None
    hosts: str | None
    query: str | None

    def over(self, earlier: "Words") -> "Words":
        """Return what two events say together, this one being the later."""
        said = {name: getattr(self, name) for name in COLUMNS}
        return replace(
            earlier, **{name: value for name, value in said.items() if value is not None}
        )

    def columns(self) -> dict[str, str | int | None]:
        """Return them by the names of the columns."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def words_of(alert: IncomingAlert) -> Words:
    """Return what an event says."""
    has_severity = "severity" not in alert.left_out
    return Words(
        severity=alert.severity.rank if has_severity else None,
        severity_reason=alert.severity_reason if has_severity else None,
        title=None if "title" in alert.left_out else alert.title,
        description=alert.description,
        service=alert.service,
        monitoring_tool=alert.monitoring_tool,
        hosts="\n".join(alert.hosts) or None,
        query=alert.query,
    )


def retold(alert: IncomingAlert, later: IncomingAlert) -> IncomingAlert:
    """Return an alert that is not stored yet in the words of a later event of the same batch."""
    left_out = later.left_out
    unchanged = words_of(later).over(words_of(alert)) == words_of(alert)
    return replace(
        alert,
        title=alert.title if "title" in left_out else later.title,
        severity=alert.severity if "severity" in left_out else later.severity,
        severity_reason=alert.severity_reason if "severity" in left_out else later.severity_reason,
        description=later.description or alert.description,
        service=later.service or alert.service,
        monitoring_tool=later.monitoring_tool or alert.monitoring_tool,
        hosts=later.hosts or alert.hosts,
        query=later.query or alert.query,
        left_out=alert.left_out & left_out,
        item_index=alert.item_index if unchanged else later.item_index,
    )


def assignments(given: Mapping[str, str], *, delivery_id: str, item_index: str) -> str:
    """Return what UPDATE sets, from the SQL that each column's new value is given by.

    A value that is NULL was left out. A row that stays the same is written as it was: none of its
    indexes has to know, and no trigger fires.
    """
    said = {name: f"coalesce({given[name]}, alerts.{name})" for name in COLUMNS}
    before = ", ".join(f"alerts.{name}" for name in SHOWN)
    after = ", ".join(said[name] for name in SHOWN)
    is_new = f"({before}) IS DISTINCT FROM ({after})"
    risen_from = "coalesce(alerts.raised_from, alerts.severity)"
    return ",\n    ".join(
        (
            *(f"{name} = {said[name]}" for name in COLUMNS),
            f"raised_from = CASE WHEN {risen_from} > {said['severity']} THEN {risen_from} END",
            f"delivery_id = CASE WHEN {is_new} THEN {delivery_id} ELSE alerts.delivery_id END",
            f"item_index = CASE WHEN {is_new} THEN {item_index} ELSE alerts.item_index END",
        )
    )
