"""Resources and queries for lists of alerts."""

from dataclasses import replace
from typing import Annotated, Literal, TypeVar
from urllib.parse import quote

from pydantic import AfterValidator, Field
from sqlalchemy import Select

from domain.alerts.listing.filters import STATUSES, TABS, AlertFilter
from domain.alerts.listing.queries import AlertListRow
from domain.alerts.listing.sort_orders import SORT_ORDERS, AlertSlice, SortOrder, parse_sort_cursor
from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.database.pagination import MAX_ID, MAX_SEARCH_TEXT_LENGTH
from domain.core.types.base import Query, RequestTimeOrDay, Resource, Time, build_choices_schema
from domain.core.types.pagination import KeysetQuery

_MAX_NAME_LENGTH = 255

#: Text of a filter. Characters that no database can store are replaced, as in stored alerts.
_FilterText = Annotated[
    str, Field(max_length=_MAX_NAME_LENGTH), AfterValidator(replace_unstorable_characters)
]
_Search = Annotated[
    str, Field(max_length=MAX_SEARCH_TEXT_LENGTH), AfterValidator(replace_unstorable_characters)
]
_Severity = Annotated[str, build_choices_schema(*Severity)]
#: ID of a row, or 0 for none.
RowId = Annotated[int, Field(ge=0, le=MAX_ID)]
Status = Annotated[str, build_choices_schema(*STATUSES)]

_Moment = RequestTimeOrDay | None


class AlertPeriodQuery(Query):
    """Query parameters for the periods in which alerts started or were first reported."""

    started_after: _Moment = Field(None, description="Earliest start time of the alert, inclusive.")
    started_before: _Moment = Field(None, description="Latest start time of the alert, exclusive.")
    created_after: _Moment = Field(
        None, description="Earliest time of the first report, inclusive."
    )
    created_before: _Moment = Field(None, description="Latest time of the first report, exclusive.")


class _SharedFilters(AlertPeriodQuery):
    status: Literal["open", "triggered", "acknowledged", "resolved", "ignored", "all"] = Field(
        default="open",
        description="Status of the alert. `open` matches triggered and acknowledged alerts.",
    )
    severity: Severity | None = None
    environment: _FilterText = ""
    service: _FilterText = ""
    assignee: _FilterText = Field(
        default="", description="Username of the assignee, or `-` for unassigned alerts."
    )
    search: _Search = Field(
        default="",
        description="Words or word prefixes to search for. An alert must contain all of them.",
    )

    def build_filter(self, project_id: int) -> AlertFilter:
        """Return the filter for the alerts of a project."""
        return AlertFilter(
            project_id=project_id,
            search=self.search.strip(),
            statuses=TABS[self.status],
            severity=self.severity,
            environment=self.environment or None,
            service=self.service or None,
            assignee=self.assignee or None,
            started=(self.started_after, self.started_before),
            created=(self.created_after, self.created_before),
        )


class AlertFilters(_SharedFilters):
    """Filters for alerts. An alert must match all of them."""

    integration: RowId | None = Field(
        default=None, description="ID of the integration that received the alert."
    )

    def build_filter(self, project_id: int) -> AlertFilter:
        """Return the filter for the alerts of a project."""
        return replace(super().build_filter(project_id), integration_id=self.integration)


class ProjectsAlertExportQuery(_SharedFilters):
    """Filters and order for an export of alerts from several projects."""

    sort: Literal["started", "oldest", "severity"] = "started"

    @property
    def order(self) -> SortOrder:
        """Sort order that the query selects."""
        return SORT_ORDERS[self.sort]

    def build_filter_across_projects(self, projects: Select[int]) -> AlertFilter:
        """Return the filter for the alerts of the projects that a query selects."""
        return replace(self.build_filter(0), projects=projects)


class AlertExportQuery(AlertFilters):
    """Filters and order for an export of alerts."""

    sort: Literal["started", "oldest", "severity", "last_event", "events"] = Field(
        default="started",
        description="Sort order. Exports do not support `last_event` and `events`, and are sorted "
        "newest first instead.",
    )

    @property
    def order(self) -> SortOrder:
        """Sort order that the query selects."""
        return SORT_ORDERS[self.sort]


class _IgnoredOrderField(Query):
    order_by: Literal["started_at"] = Field(
        default="started_at", description="Accepted for compatibility, but ignored. Use `sort`."
    )


class ProjectsAlertQuery(_IgnoredOrderField, ProjectsAlertExportQuery, KeysetQuery):
    """Filters and order for a list of alerts from several projects."""


class AlertQuery(_IgnoredOrderField, AlertExportQuery, KeysetQuery):
    """Filters and order for a list of alerts."""


def parse_alert_slice(query: AlertQuery | ProjectsAlertQuery) -> AlertSlice:
    """Return the part of the list that the query requests.

    Raise QueryError if the cursor is not valid.
    """
    following = parse_sort_cursor(query.cursor, query.order)
    return AlertSlice(size=query.page_size, order=query.order, following=following)


class Alert(Resource):
    """An alert in a list."""

    id: int
    iid: int = Field(
        description="Number of the alert in the project. Numbers are never reused, but can be "
        "skipped."
    )
    title: str
    severity: _Severity
    raised_from: _Severity | None = Field(
        description="Severity before it was raised. Null if it was not raised."
    )
    status: Status
    events: int = Field(description="Number of reports of the alert.")
    started_at: Time
    ended_at: Time | None
    last_event_at: Time
    service: str | None
    environment: str | None
    monitoring_tool: str | None
    hosts: tuple[str, ...]
    integration: str | None = Field(
        validation_alias="integration_name",
        description="Name of the integration that received the alert.",
    )
    assignee: str | None = Field(description="Username of the assignee.")
    snoozed_until: Time | None = Field(
        description="End of the snooze. Until then, no pages are sent for the alert."
    )
    web_url: str


class ProjectAlert(Alert):
    """An alert in a list of alerts from several projects."""

    project_id: int
    project_path: str


AlertResource = TypeVar("AlertResource", bound=Alert)


def build_alert_resource(
    kind: type[AlertResource], row: AlertListRow, base_url: str
) -> AlertResource:
    """Convert a row of a list to a resource."""
    return kind.model_validate(
        {**vars(row), "web_url": build_alert_url(row.project_path, row.iid, base_url)}
    )


def build_alert_url(project_path: str, iid: int, base_url: str) -> str:
    """Return the URL of an alert's page."""
    return f"{base_url}/{quote(project_path)}/-/alerts/{iid}"


def build_incident_url(project_path: str, iid: int, base_url: str) -> str:
    """Return the URL of an incident's page."""
    return f"{base_url}/{quote(project_path)}/-/incidents/{iid}"
