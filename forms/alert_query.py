"""What the address of an alert list asks for. What makes no sense there asks for nothing."""

from dataclasses import dataclass, replace
from typing import Any

from werkzeug.datastructures import MultiDict

from domain.alerts.filters import TABS, AlertFilter
from domain.alerts.incoming import Severity
from domain.alerts.orders import NEWEST, ORDERS, Order
from domain.alerts.text import storable
from domain.paging import LARGEST_ID

LONGEST_SEARCH = 200
_LONGEST_NAME = 255
_OPEN = "open"


@dataclass(frozen=True, kw_only=True)
class AlertQuery:
    """A tab, filters and an order."""

    tab: str
    wanted: AlertFilter
    order: Order

    @property
    def arguments(self) -> dict[str, Any]:
        """The query that asks for the same; what is usual is left out."""
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
        """How many filters are set beside tab and search."""
        return len(self.arguments.keys() - {"status", "search", "sort"})


def read_query(given: MultiDict[str, str], *, project_id: int) -> AlertQuery:
    """Return what an address asks for."""
    tab = given.get("status", _OPEN)
    tab = tab if tab in TABS else _OPEN
    wanted = AlertFilter(
        project_id=project_id,
        statuses=TABS[tab],
        search=storable(given.get("search", "")).strip()[:LONGEST_SEARCH],
        environment=_name(given, "environment"),
        service=_name(given, "service"),
        assignee=_name(given, "assignee"),
        integration_id=_number(given.get("integration", "")),
    )
    severity = given.get("severity", "")
    if severity in tuple(Severity):
        wanted = replace(wanted, severity=Severity(severity))
    return AlertQuery(tab=tab, wanted=wanted, order=ORDERS.get(given.get("sort", ""), NEWEST))


def _name(given: MultiDict[str, str], name: str) -> str | None:
    return storable(given.get(name, ""))[:_LONGEST_NAME] or None


def _number(text: str) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) < 20  # noqa: PLR2004 - 64 bits
    return int(text) if is_number and int(text) <= LARGEST_ID else None
