"""Form fields that select alerts: conditions, and the filters of alert lists."""

from dataclasses import dataclass, replace
from typing import Any

from werkzeug.datastructures import MultiDict
from wtforms import SelectMultipleField
from wtforms.validators import Length

from domain.alerts.listing.filters import SEVERITIES, TABS, AlertFilter
from domain.alerts.listing.sort_orders import NEWEST_FIRST, SORT_ORDERS, SortOrder
from domain.alerts.matching.conditions import AlertConditions, parse_conditions
from domain.alerts.matching.parser import MAX_MATCHERS_TEXT_LENGTH
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.text import replace_unstorable_characters
from domain.core.database.paging import get_choice, get_row_id, get_search_text
from domain.core.errors import QueryError
from forms.base import Form, SomeBody, TextLineField, limit_length

SEVERITY_CHOICES = [(each.value, each.value.capitalize()) for each in Severity]
_MAX_LENGTH = 2_000
_LENGTH_VALIDATOR = Length(max=_MAX_LENGTH, message=f"Enter at most {_MAX_LENGTH:,} characters.")


class ConditionsForm(Form):
    """Fields for conditions on alerts. An empty field matches every alert."""

    severities = SelectMultipleField("Severities", choices=SEVERITY_CHOICES)
    environments = TextLineField("Environments", _LENGTH_VALIDATOR)
    services = TextLineField("Services", _LENGTH_VALIDATOR)
    labels = TextLineField("Labels", limit_length(MAX_MATCHERS_TEXT_LENGTH, "Labels"))

    @staticmethod
    def build_field_values(conditions: AlertConditions) -> dict[str, object]:
        """Return the field values for the given conditions."""
        return {
            "severities": list(conditions.severities),
            "environments": ", ".join(conditions.environments),
            "services": ", ".join(conditions.services),
            "labels": conditions.labels_text,
        }

    def build_body(self, body: type[SomeBody]) -> SomeBody:
        """Return the entered values as a body with conditions.

        Raise InvalidError for invalid values.
        """
        return self.build_entered_body(body, **self._list_entered_values())

    def _list_entered_values(self) -> dict[str, object]:
        return {
            "severities": self.severities.data or [],
            "environments": _split_names(self.environments.data),
            "services": _split_names(self.services.data),
            "labels": self.labels.data or "",
        }

    @property
    def environment_and_service_names(self) -> dict[str, list[str]]:
        """Names of environments and services, which are entered as comma-separated lists."""
        environments, services = (
            _split_names(self.environments.data),
            _split_names(self.services.data),
        )
        return {"environments": environments, "services": services}

    @property
    def conditions(self) -> AlertConditions:
        """The entered conditions.

        Raise InvalidError for invalid values.
        """
        return parse_conditions(self._list_entered_values())


def _split_names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


_MAX_NAME_LENGTH = 255
_MAX_PATH_LENGTH = 1024
_DEFAULT_TAB = "open"
#: Query parameters of a project's alert list.
ALERT_LIST_PARAMETERS = (
    *("status", "search", "severity", "environment", "service", "assignee", "integration"),
    "sort",
)
#: Query parameters of the list for all projects, which has a project filter instead of an
#: integration filter.
ALERT_LIST_PARAMETERS_ACROSS = tuple(
    "project" if name == "integration" else name for name in ALERT_LIST_PARAMETERS
)


@dataclass(frozen=True, kw_only=True)
class AlertListQuery:
    """The tab, filters and sort order of an alert list."""

    tab: str
    wanted: AlertFilter
    order: SortOrder
    #: Full path of the project selected in the list for all projects.
    project: str | None = None

    @property
    def query_parameters(self) -> dict[str, Any]:
        """Query parameters, without default values."""
        given = {
            "status": self.tab if self.tab != _DEFAULT_TAB else None,
            "search": self.wanted.search or None,
            "project": self.project,
            "severity": self.wanted.severity,
            "environment": self.wanted.environment,
            "service": self.wanted.service,
            "assignee": self.wanted.assignee,
            "integration": self.wanted.integration_id,
            "sort": self.order.name if self.order is not NEWEST_FIRST else None,
        }
        return {name: value for name, value in given.items() if value is not None}

    @property
    def filter_count(self) -> int:
        """Number of active filters, excluding the tab and the search."""
        return len(self.query_parameters.keys() - {"status", "search", "sort"})


def parse_alert_list_query(arguments: MultiDict[str, str], *, project_id: int) -> AlertListQuery:
    """Parse the query parameters of a project's alert list.

    Raise QueryError for unknown values.
    """
    tab = get_choice(arguments, "status", TABS, _DEFAULT_TAB)
    severity = get_choice(arguments, "severity", SEVERITIES, "")
    wanted = AlertFilter(
        project_id=project_id,
        statuses=TABS[tab],
        search=replace_unstorable_characters(get_search_text(arguments, "search")).strip(),
        severity=Severity(severity) if severity else None,
        environment=_parse_name(arguments, "environment"),
        service=_parse_name(arguments, "service"),
        assignee=_parse_name(arguments, "assignee"),
        integration_id=get_row_id(arguments, "integration"),
    )
    order = SORT_ORDERS[get_choice(arguments, "sort", SORT_ORDERS, NEWEST_FIRST.name)]
    return AlertListQuery(tab=tab, wanted=wanted, order=order)


def parse_alert_list_query_across(arguments: MultiDict[str, str]) -> AlertListQuery:
    """Parse the query parameters of the list for all projects, with sort orders that have an index.

    Raise QueryError for unknown values, or for an order without an index.
    """
    query = parse_alert_list_query(arguments, project_id=0)
    if query.order.is_among_newest:
        known = ", ".join(name for name, order in SORT_ORDERS.items() if not order.is_among_newest)
        raise QueryError(f"`sort` must be one of {known}.", field="sort")
    return replace(query, project=_parse_name(arguments, "project", maximum=_MAX_PATH_LENGTH))


def _parse_name(
    arguments: MultiDict[str, str], name: str, maximum: int = _MAX_NAME_LENGTH
) -> str | None:
    return replace_unstorable_characters(get_search_text(arguments, name, maximum=maximum)) or None
