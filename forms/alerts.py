"""Form fields that select alerts: conditions, and the filters of alert lists."""

from dataclasses import dataclass, replace
from typing import Any

from werkzeug.datastructures import MultiDict
from wtforms import SelectMultipleField
from wtforms.validators import Length

from domain.alerts.listing.filters import SEVERITIES, TABS, AlertFilter
from domain.alerts.listing.sort_orders import NEWEST, SORT_ORDERS, SortOrder
from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.alerts.matching.parser import LONGEST_TEXT
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.text import storable
from domain.core.database.paging import one_of, row_id, words
from domain.core.errors import QueryError
from forms.base import Form, Line, SomeBody, at_most

SEVERITY_CHOICES = [(each.value, each.value.capitalize()) for each in Severity]
_LONGEST = 2_000
_TOO_LONG = Length(max=_LONGEST, message=f"Enter at most {_LONGEST:,} characters.")


class ConditionsForm(Form):
    """Conditions on alerts. An empty field matches every alert."""

    severities = SelectMultipleField("Severities", choices=SEVERITY_CHOICES)
    environments = Line("Environments", _TOO_LONG)
    services = Line("Services", _TOO_LONG)
    labels = Line("Labels", at_most(LONGEST_TEXT, "Labels"))

    @staticmethod
    def values_of(conditions: Conditions) -> dict[str, object]:
        """Return the field values that represent these conditions."""
        return {
            "severities": list(conditions.severities),
            "environments": ", ".join(conditions.environments),
            "services": ", ".join(conditions.services),
            "labels": conditions.labels_text,
        }

    def entered(self, body: type[SomeBody]) -> SomeBody:
        """Return the entered values as a body with conditions.

        Raise InvalidError for invalid values.
        """
        return self.read(body, **self._given())

    def _given(self) -> dict[str, object]:
        return {
            "severities": self.severities.data or [],
            "environments": _names(self.environments.data),
            "services": _names(self.services.data),
            "labels": self.labels.data or "",
        }

    @property
    def names(self) -> dict[str, list[str]]:
        """Names of environments and services, which are entered as comma-separated lists."""
        environments, services = _names(self.environments.data), _names(self.services.data)
        return {"environments": environments, "services": services}

    @property
    def conditions(self) -> Conditions:
        """The entered conditions.

        Raise InvalidError for invalid values.
        """
        return conditions_from(self._given())


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


_LONGEST_NAME = 255
_LONGEST_PATH = 1024
_OPEN = "open"
#: Query parameters of a project's alert list.
PARAMETERS = (
    *("status", "search", "severity", "environment", "service", "assignee", "integration"),
    "sort",
)
#: Query parameters of the list of all projects, which has a project filter and no integration
#: filter.
PARAMETERS_ACROSS = tuple("project" if name == "integration" else name for name in PARAMETERS)


@dataclass(frozen=True, kw_only=True)
class AlertQuery:
    """The tab, filters and sort order of an alert list."""

    tab: str
    wanted: AlertFilter
    order: SortOrder
    #: Full path of the selected project in the list of all projects.
    project: str | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Parameters of this query without default values."""
        given = {
            "status": self.tab if self.tab != _OPEN else None,
            "search": self.wanted.search or None,
            "project": self.project,
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
        """Number of active filters, excluding the tab and the search."""
        return len(self.arguments.keys() - {"status", "search", "sort"})


def read_query(given: MultiDict[str, str], *, project_id: int) -> AlertQuery:
    """Return the query that these parameters describe.

    Raise QueryError for unknown values.
    """
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


def read_query_across(given: MultiDict[str, str]) -> AlertQuery:
    """Return the query for a list of several projects, in an order that has an index.

    Raise QueryError for unknown values, or for an order without an index.
    """
    query = read_query(given, project_id=0)
    if query.order.is_among_newest:
        known = ", ".join(name for name, order in SORT_ORDERS.items() if not order.is_among_newest)
        raise QueryError(f"sort must be one of {known}.", field="sort")
    return replace(query, project=_name(given, "project", most=_LONGEST_PATH))


def _name(given: MultiDict[str, str], name: str, most: int = _LONGEST_NAME) -> str | None:
    return storable(words(given, name, most=most)) or None
