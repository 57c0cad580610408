"""Fields of an alert that each report can change, and the SQL that changes them.

The latest report determines the fields. A field that a report omits keeps its value. For example, a
report without a severity does not make an alert critical, although critical is the default.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from domain.alerts.parsing.incoming_alert import IncomingAlert

#: Columns whose changes are recorded in the activity by a trigger (migration 0051).
RECORDED_COLUMNS = (
    "severity",
    "title",
    "description",
    "service",
    "monitoring_tool",
    "hosts",
    "query",
)
#: All columns that a report can change.
REPORTED_COLUMNS = (*RECORDED_COLUMNS, "severity_reason")


class ReportedFields(NamedTuple):
    """The values in a report for columns of an alert. Omitted values are None."""

    severity: int | None
    severity_reason: str | None
    title: str | None
    description: str | None
    service: str | None
    monitoring_tool: str | None
    hosts: str | None
    query: str | None

    def merge_over_earlier(self, earlier: "ReportedFields") -> "ReportedFields":
        """Merge the fields of two reports. The values of this report take precedence."""
        own = {name: getattr(self, name) for name in REPORTED_COLUMNS}
        return earlier._replace(
            **{name: own[name] for name in REPORTED_COLUMNS if own[name] is not None}
        )


def get_reported_fields(alert: IncomingAlert) -> ReportedFields:
    """Return the fields that the sender provided, without default values."""
    has_severity = "severity" not in alert.left_out
    return ReportedFields(
        severity=alert.severity.rank if has_severity else None,
        severity_reason=alert.severity_reason if has_severity else None,
        title=None if "title" in alert.left_out else alert.title,
        description=alert.description,
        service=alert.service,
        monitoring_tool=alert.monitoring_tool,
        hosts="\n".join(alert.hosts) or None,
        query=alert.query,
    )


def apply_later_report(alert: IncomingAlert, later: IncomingAlert) -> IncomingAlert:
    """Return an alert that is not stored yet, updated by a later item in the same delivery."""
    left_out = later.left_out
    before = get_reported_fields(alert)
    is_unchanged = get_reported_fields(later).merge_over_earlier(before) == before
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
        item_index=alert.item_index if is_unchanged else later.item_index,
    )


def build_set_clause(values: Mapping[str, str], *, delivery_id: str, item_index: str) -> str:
    """Return the SET clause of an UPDATE statement that applies a report to `alerts`.

    `values` contains an SQL expression for each column in REPORTED_COLUMNS; NULL means that the
    report omits the column. If no recorded column changes, the row keeps its delivery_id and
    item_index. In this case, no index must be updated, and no trigger fires.
    """
    updated = {name: f"coalesce({values[name]}, alerts.{name})" for name in REPORTED_COLUMNS}
    before = ", ".join(f"alerts.{name}" for name in RECORDED_COLUMNS)
    after = ", ".join(updated[name] for name in RECORDED_COLUMNS)
    is_changed = f"({before}) IS DISTINCT FROM ({after})"
    raised_from = "coalesce(alerts.raised_from, alerts.severity)"
    return ",\n    ".join(
        (
            *(f"{name} = {updated[name]}" for name in REPORTED_COLUMNS),
            f"raised_from = CASE WHEN {raised_from} > {updated['severity']} THEN {raised_from} END",
            f"delivery_id = CASE WHEN {is_changed} THEN {delivery_id} ELSE alerts.delivery_id END",
            f"item_index = CASE WHEN {is_changed} THEN {item_index} ELSE alerts.item_index END",
        )
    )
