"""Alerts of a project: the lists of them, one of them, and what a request may change."""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from sqlalchemy import Select

from domain.alerts.handling.alert_detail import AlertDetail as DetailView
from domain.alerts.handling.status import MOST_AT_ONCE, StatusChangeResult
from domain.alerts.listing.filters import STATUSES, TABS, AlertFilter
from domain.alerts.listing.queries import AlertRow, AlertSlice
from domain.alerts.listing.sort_orders import SORT_ORDERS, SortOrder, read_cursor
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.text import storable
from domain.database.list_queries import LONGEST_SEARCH
from domain.database.paging import LARGEST_ID
from domain.types.base import Body, KeysetQuery, Numbers, Query, Resource, Text, Time, one_of

_LONGEST_NAME = 255

#: A text of a filter. What no database can store matches nothing, as on the page.
_Name = Annotated[str, Field(max_length=_LONGEST_NAME), AfterValidator(storable)]
_Search = Annotated[str, Field(max_length=LONGEST_SEARCH), AfterValidator(storable)]
_RowId = Annotated[int, Field(ge=0, le=LARGEST_ID)]


_Severity = Annotated[str, one_of(*Severity)]
_Status = Annotated[str, one_of(*STATUSES)]


class _SharedFilters(Query):
    status: Literal["open", "triggered", "acknowledged", "resolved", "ignored", "all"] = Field(
        default="open", description="`open` is triggered or acknowledged."
    )
    severity: Severity | None = None
    environment: _Name = ""
    service: _Name = ""
    assignee: _Name = Field(default="", description="A user name, or `-` for nobody.")
    search: _Search = Field(
        default="", description="Words of the alert or their beginnings; all have to occur."
    )

    def of_project(self, project_id: int) -> AlertFilter:
        """Return the filter on the alerts of a project."""
        return AlertFilter(
            project_id=project_id,
            search=self.search.strip(),
            statuses=TABS[self.status],
            severity=self.severity,
            environment=self.environment or None,
            service=self.service or None,
            assignee=self.assignee or None,
        )


class AlertFilters(_SharedFilters):
    """Which alerts are meant: those that match everything that is given."""

    integration: _RowId | None = Field(default=None, description="The id of an integration.")

    def of_project(self, project_id: int) -> AlertFilter:
        """Return the filter on the alerts of a project."""
        return replace(super().of_project(project_id), integration_id=self.integration)


class ProjectsAlertExportQuery(_SharedFilters):
    """Which alerts of several projects a file has, and in which order."""

    sort: Literal["started", "oldest", "severity"] = "started"

    @property
    def order(self) -> SortOrder:
        """The sort order."""
        return SORT_ORDERS[self.sort]

    def of_projects(self, projects: Select[int]) -> AlertFilter:
        """Return the filter on the alerts of projects, whose ids are selected."""
        return replace(self.of_project(0), projects=projects)


class ProjectsAlertQuery(ProjectsAlertExportQuery, KeysetQuery):
    """Which alerts of several projects a list has, and in which order."""

    order_by: Literal["started_at"] = Field(
        default="started_at", description="Accepted for clients that send it; `sort` decides."
    )

    @property
    def part(self) -> AlertSlice:
        """The requested page; raises QueryError for a forged cursor."""
        following = read_cursor(self.cursor, self.order)
        return AlertSlice(size=self.size, order=self.order, following=following)


class AlertExportQuery(AlertFilters):
    """Which alerts a file has, and in which order."""

    sort: Literal["started", "oldest", "severity", "last_event", "events"] = Field(
        default="started",
        description="`last_event` and `events` are for pages; a file has the newest first instead.",
    )

    @property
    def order(self) -> SortOrder:
        """The sort order."""
        return SORT_ORDERS[self.sort]


class AlertQuery(AlertExportQuery, KeysetQuery):
    """Which alerts a list has, and in which order."""

    order_by: Literal["started_at"] = Field(
        default="started_at", description="Accepted for clients that send it; `sort` decides."
    )

    @property
    def part(self) -> AlertSlice:
        """The requested page; raises QueryError for a forged cursor."""
        following = read_cursor(self.cursor, self.order)
        return AlertSlice(size=self.size, order=self.order, following=following)


class AlertBody(Body):
    """Changes to an alert; omitted fields are kept."""

    status: Literal["triggered", "acknowledged", "resolved", "ignored"] | None = None
    assignee: Text | None = Field(
        default=None, description="A user name; empty or null for nobody."
    )
    assignee_id: _RowId | None = Field(
        default=None, description="The id of a user; 0 or null for nobody."
    )


class AlertStatusBody(Body):
    """A status for several alerts: those with these numbers, or those that a filter matches."""

    status: Literal["triggered", "acknowledged", "resolved", "ignored"]
    iids: Numbers | None = Field(default=None, description=f"At most {MOST_AT_ONCE}.")
    filter: AlertFilters | None = Field(
        default=None, description=f"The newest {MOST_AT_ONCE} that match are changed at once."
    )
    cursor: str = Field(
        default="", description="With a filter: from `next_cursor`, to change those that follow."
    )


class Alert(Resource):
    """An alert in a list."""

    id: int
    iid: int = Field(description="Its number within the project.")
    title: str
    severity: _Severity
    raised_from: _Severity | None = Field(
        description="The severity before the last report raised it."
    )
    status: _Status
    events: int = Field(description="The number of reports.")
    started_at: Time
    ended_at: Time | None
    last_event_at: Time
    service: str | None
    environment: str | None
    monitoring_tool: str | None
    hosts: tuple[str, ...]
    integration: str | None = Field(description="The name of the integration that received it.")
    assignee: str | None = Field(description="A user name.")
    web_url: str

    @classmethod
    def of(cls, row: AlertRow, web_url: str) -> "Alert":
        """Present an alert."""
        return cls(
            id=row.id,
            iid=row.iid,
            title=row.title,
            severity=row.severity,
            raised_from=row.raised_from,
            status=row.status,
            events=row.events,
            started_at=row.started_at,
            ended_at=row.ended_at,
            last_event_at=row.last_event_at,
            service=row.service,
            environment=row.environment,
            monitoring_tool=row.monitoring_tool,
            hosts=row.hosts,
            integration=row.integration_name,
            assignee=row.assignee,
            web_url=web_url,
        )


class ProjectAlert(Alert):
    """An alert in a list of several projects."""

    project_id: int
    project_path: str

    @classmethod
    def of(cls, row: AlertRow, web_url: str) -> "ProjectAlert":
        """Present an alert with its project."""
        return cls(
            **dict(Alert.of(row, web_url)),
            project_id=row.project_id,
            project_path=row.project_path,
        )


class AlertGrouping(Resource):
    """Why reports are grouped into an alert."""

    sentence: str
    fields: dict[str, str] = Field(description="What the fingerprint was made from.")


class AlertDetail(Alert):
    """An alert with all its fields. Those that only the payload has are null without it."""

    description: str | None
    runbook: str | None
    query: str | None = Field(description="The expression of the metric.")
    incident_markdown: str | None
    y_label: str | None
    generator_url: str | None = Field(description="The URL of the graph.")
    severity_reason: str = Field(description="Why the alert has its severity.")
    grouping: AlertGrouping
    integration_id: int | None
    received_at: Time | None = Field(
        description="When the report was received whose texts are shown."
    )
    details: dict[str, str] = Field(description="Every field of the payload by its dotted path.")

    @classmethod
    def of_detail(cls, view: DetailView, web_url: str) -> "AlertDetail":
        """Present an alert with all its fields."""
        return cls(
            **dict(Alert.of(view, web_url)),
            description=view.description,
            runbook=view.runbook,
            query=view.query,
            incident_markdown=view.markdown,
            y_label=view.y_label,
            generator_url=view.generator_url,
            severity_reason=view.severity_reason,
            grouping=AlertGrouping(
                sentence=view.grouping.sentence, fields=dict(view.grouping.fields)
            ),
            integration_id=view.integration_id,
            received_at=view.received_at,
            details=dict(view.payload_fields),
        )


class StatusConflict(Resource):
    """An alert that was left as it is: another open one has its fingerprint."""

    iid: int
    title: str


class StatusReport(Resource):
    """What a change of several alerts did."""

    status: _Status
    changed: tuple[int, ...] = Field(description="Numbers (iid) of the alerts that were changed.")
    unchanged: tuple[int, ...] = Field(description="Those that had the status before.")
    conflicts: tuple[StatusConflict, ...]
    not_found: tuple[int, ...] = Field(description="Given numbers that no alert has.")
    next_cursor: str | None = Field(description="With a filter: leads to the alerts that follow.")

    @classmethod
    def of(
        cls, body: AlertStatusBody, result: StatusChangeResult, next_cursor: str | None = None
    ) -> "StatusReport":
        """Present the result of a change."""
        unchanged, conflicts = set(result.unchanged), dict(result.conflicts)
        found = {*result.done, *conflicts}
        return cls(
            status=body.status,
            changed=tuple(iid for iid in result.done if iid not in unchanged),
            unchanged=result.unchanged,
            conflicts=tuple(
                StatusConflict(iid=iid, title=title) for iid, title in result.conflicts
            ),
            not_found=tuple(iid for iid in dict.fromkeys(body.iids or ()) if iid not in found),
            next_cursor=next_cursor,
        )
