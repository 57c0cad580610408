"""Reads the query of an incident list's URL, and refuses unknown values."""

from dataclasses import dataclass
from typing import Any

from werkzeug.datastructures import MultiDict

from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.listing.sort_orders import SortOrder
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.text import storable
from domain.database.list_queries import one_of, words
from domain.incidents.listing import NEWEST, SORT_ORDERS, TABS, IncidentFilter

_LONGEST_NAME = 255
_OPEN = "open"
#: The parameters of the query.
PARAMETERS = ("status", "search", "severity", "assignee", "sort")


@dataclass(frozen=True, kw_only=True)
class IncidentQuery:
    """The tab, filters and sort order of an incident list."""

    tab: str
    wanted: IncidentFilter
    order: SortOrder

    @property
    def arguments(self) -> dict[str, Any]:
        """The parameters of this query, without those that have their default value."""
        given = {
            "status": self.tab if self.tab != _OPEN else None,
            "search": self.wanted.search or None,
            "severity": self.wanted.severity,
            "assignee": self.wanted.assignee,
            "sort": self.order.name if self.order is not NEWEST else None,
        }
        return {name: value for name, value in given.items() if value is not None}

    @property
    def filters(self) -> int:
        """The number of filters that are set, without tab and search."""
        return len(self.arguments.keys() - {"status", "search", "sort"})


def read_query(given: MultiDict[str, str], *, project_id: int) -> IncidentQuery:
    """Return the query in these parameters; raise QueryError for unknown values."""
    tab = one_of(given, "status", TABS, _OPEN)
    severity = one_of(given, "severity", SEVERITIES, "")
    wanted = IncidentFilter(
        project_id=project_id,
        statuses=TABS[tab],
        search=storable(words(given, "search")).strip(),
        severity=Severity(severity) if severity else None,
        assignee=storable(words(given, "assignee", most=_LONGEST_NAME)) or None,
    )
    order = SORT_ORDERS[one_of(given, "sort", SORT_ORDERS, NEWEST.name)]
    return IncidentQuery(tab=tab, wanted=wanted, order=order)
