"""Form fields that select alerts: conditions, and the filters of alert lists."""

from dataclasses import dataclass, replace
from typing import Any

from werkzeug.datastructures import MultiDict
from wtforms import SelectMultipleField
from wtforms.validators import Length

from domain.alerts.listing.filters import AlertFilter
from domain.alerts.listing.sort_orders import NEWEST_FIRST, SortOrder
from domain.alerts.listing.types import AlertExportQuery, AlertPeriodQuery, ProjectsAlertExportQuery
from domain.alerts.matching.conditions import AlertConditions, parse_conditions
from domain.alerts.matching.matcher_parser import MAX_MATCHERS_TEXT_LENGTH
from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.database.pagination import get_search_text
from domain.core.types.validation import validate_query
from forms.base import Form, SomeBody, TextLineField, limit_length

SEVERITY_CHOICES = [(each.value, each.value.capitalize()) for each in Severity]
_MAX_LENGTH = 2_000
_MAX_PATH_LENGTH = 1024
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
        """Return the entered conditions as a request body of the given type.

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
        """The entered conditions. An empty field matches every alert.

        Raise InvalidError for invalid values.
        """
        return parse_conditions(self._list_entered_values())


def _split_names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


_DEFAULTS = {"status": "open", "sort": NEWEST_FIRST.name}
#: Query parameters of a project's alert list.
ALERT_LIST_PARAMETERS = tuple(AlertExportQuery.model_fields)
#: Query parameters of the list for all projects, which has a project filter instead of an
#: integration filter.
ALERT_LIST_PARAMETERS_ACROSS = ("project", *ProjectsAlertExportQuery.model_fields)


@dataclass(frozen=True, kw_only=True)
class AlertListQuery:
    """The tab, filters and sort order of an alert list."""

    tab: str
    wanted: AlertFilter
    order: SortOrder
    #: Query parameters, without default values.
    query_parameters: dict[str, Any]

    @property
    def project(self) -> str | None:
        """Full path of the project or group selected in the list for all projects."""
        return self.query_parameters.get("project")

    @property
    def filter_count(self) -> int:
        """Number of active filters, excluding the tab and the search. A period is one filter."""
        names = self.query_parameters.keys() - {"status", "search", "sort"}
        return len({name.partition("_")[0] for name in names})

    @property
    def period_parameters(self) -> dict[str, str]:
        """Query parameters that limit the list to a period."""
        given = self.query_parameters
        return {name: given[name] for name in AlertPeriodQuery.model_fields if name in given}


def parse_alert_list_query(arguments: MultiDict[str, str], *, project_id: int) -> AlertListQuery:
    """Parse the query parameters of a project's alert list.

    Raise QueryError for unknown values.
    """
    return _parse_query(AlertExportQuery, arguments, project_id)


def parse_alert_list_query_for_all_projects(arguments: MultiDict[str, str]) -> AlertListQuery:
    """Parse the query parameters of the alert list for all projects.

    Only sort orders with a database index are accepted. Raise QueryError for unknown values, or for
    an order without an index.
    """
    query = _parse_query(ProjectsAlertExportQuery, arguments, project_id=0)
    path = replace_unstorable_characters(
        get_search_text(arguments, "project", maximum=_MAX_PATH_LENGTH)
    )
    given = {"project": path} if path else {}
    return replace(query, query_parameters={**given, **query.query_parameters})


def _parse_query(
    schema: type[AlertExportQuery | ProjectsAlertExportQuery],
    arguments: MultiDict[str, str],
    project_id: int,
) -> AlertListQuery:
    texts = {name: arguments.get(name, "").strip() for name in schema.model_fields}
    given = {name: text for name, text in texts.items() if text}
    query = validate_query(schema, {name: [text] for name, text in given.items()})
    wanted, order = query.build_filter(project_id), query.order
    shown = {name: text for name, text in given.items() if text != _DEFAULTS.get(name)}
    return AlertListQuery(tab=query.status, wanted=wanted, order=order, query_parameters=shown)
