"""Reads the query of an alert list's URL, and refuses unknown values."""

from dataclasses import dataclass
from typing import Any

from werkzeug.datastructures import MultiDict

from domain.alerts.listing.filters import SEVERITIES, TABS, AlertFilter
from domain.alerts.listing.sort_orders import NEWEST, SORT_ORDERS, SortOrder
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.text import storable
from domain.database.list_queries import one_of, row_id, words

_LONGEST_NAME = 255
_OPEN = "open"
#: The parameters of the query.
PARAMETERS = (
    *("status", "search", "severity", "environment", "service", "assignee", "integration"),
    "sort",
)


@dataclass(frozen=True, kw_only=True)
class AlertQuery:
    """The tab, filters and sort order of an alert list."""

    tab: str
    wanted: AlertFilter
    order: SortOrder

    @property
    def arguments(self) -> dict[str, Any]:
        """The parameters of this query, without those that have their default value."""
        given = {
            "status": self.tab if self.tab != _OPEN else None,
            "search": self.wanted.search or None,
            "severity": self.wanted.severity,
            "environment": self.wanted.environment,
            "service": self.wanted.service,
            "assignee": self.wanted.assignee,
            "integration": self.wanted.integration_id,
            "sort": self.order.name if self.order is not NEWEST else None,
        }
        return {name: value for name, value in given.items() if value is not None}

    @property
    def filters(self) -> int:
        """The number of filters that are set, without tab and search."""
        return len(self.arguments.keys() - {"status", "search", "sort"})


def read_query(given: MultiDict[str, str], *, project_id: int) -> AlertQuery:
    """Return the query in these parameters; raise QueryError for unknown values."""
    tab = one_of(given, "status", TABS, _OPEN)
    severity = one_of(given, "severity", SEVERITIES, "")
    wanted = AlertFilter(
        project_id=project_id,
        statuses=TABS[tab],
        search=storable(words(given, "search")).strip(),
        severity=Severity(severity) if severity else None,
        environment=_name(given, "environment"),
        service=_name(given, "service"),
        assignee=_name(given, "assignee"),
        integration_id=row_id(given, "integration"),
    )
    order = SORT_ORDERS[one_of(given, "sort", SORT_ORDERS, NEWEST.name)]
    return AlertQuery(tab=tab, wanted=wanted, order=order)


def _name(given: MultiDict[str, str], name: str) -> str | None:
    return storable(words(given, name, most=_LONGEST_NAME)) or None
