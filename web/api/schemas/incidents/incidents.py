"""Incidents of a project: the list of them, one of them, and what a request may change."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from domain.alerts.listing.sort_orders import SortOrder, read_cursor
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.text import storable
from domain.database.list_queries import LONGEST_SEARCH
from domain.database.paging import LARGEST_ID
from domain.incidents.composing import LONGEST_DESCRIPTION, LONGEST_TITLE
from domain.incidents.links import MOST_AT_ONCE
from domain.incidents.listing import SORT_ORDERS, TABS, IncidentFilter, IncidentSlice
from domain.incidents.views import MOST_NAMED_ALERTS, STATUSES, IncidentView, Person
from web.api.schemas.base import (
    LARGEST_NUMBER,
    Body,
    KeysetQuery,
    Numbers,
    Resource,
    Text,
    Time,
    Words,
    one_of,
    split,
)

_LONGEST_NAME = 255
#: A text of a filter. What no database can store matches nothing, as on the page.
_Name = Annotated[str, Field(max_length=_LONGEST_NAME), AfterValidator(storable)]
_Search = Annotated[str, Field(max_length=LONGEST_SEARCH), AfterValidator(storable)]
_UserIds = Annotated[tuple[Annotated[int, Field(ge=0, le=LARGEST_ID)], ...], BeforeValidator(split)]


class IncidentQuery(KeysetQuery):
    """Which incidents a list has, and in which order."""

    status: Literal["open", "triggered", "acknowledged", "resolved", "all"] = Field(
        default="all", description="`open` is triggered or acknowledged."
    )
    severity: Severity | None = None
    assignee: _Name = Field(default="", description="A user name, or `-` for nobody.")
    alert: Annotated[int, Field(ge=1, le=LARGEST_NUMBER)] | None = Field(
        default=None, description="The number (iid) of an alert that it has."
    )
    search: _Search = Field(
        default="",
        description="Words of title and description or their beginnings; all have to occur.",
    )
    sort: Literal["created", "oldest", "severity"] = "created"
    order_by: Literal["created_at"] = Field(
        default="created_at", description="Accepted for clients that send it; `sort` decides."
    )

    def of_project(self, project_id: int) -> IncidentFilter:
        """Return the filter on the incidents of a project."""
        return IncidentFilter(
            project_id=project_id,
            statuses=TABS[self.status],
            search=self.search.strip(),
            severity=self.severity,
            assignee=self.assignee or None,
            alert=self.alert,
        )

    @property
    def order(self) -> SortOrder:
        """The sort order."""
        return SORT_ORDERS[self.sort]

    @property
    def part(self) -> IncidentSlice:
        """The requested page; raises QueryError for a forged cursor."""
        following = read_cursor(self.cursor, self.order)
        return IncidentSlice(size=self.size, order=self.order, following=following)


class _Fields(Body):
    title: Text | None = Field(default=None, description=f"At most {LONGEST_TITLE} characters.")
    description: Text | None = Field(
        default=None, description=f"Markdown, at most {LONGEST_DESCRIPTION} characters."
    )
    severity: Severity | None = None
    assignees: Words | None = Field(default=None, description="User names; empty for nobody.")
    assignee_ids: _UserIds | None = Field(
        default=None, description="Ids of users in place of names; 0 or empty for nobody."
    )
    close_when_resolved: bool | None = Field(
        default=None, description="Whether it is closed when all of its alerts are resolved."
    )


class IncidentBody(_Fields):
    """A new incident. With alerts, what is left out is composed from the first of them."""

    alerts: Numbers = Field(
        default=(), description=f"Numbers (iid) of at most {MOST_AT_ONCE} alerts."
    )


class IncidentChange(_Fields):
    """Changes to an incident; omitted fields are kept."""

    status: Literal["triggered", "acknowledged", "resolved"] | None = Field(
        default=None,
        description="`acknowledged` acknowledges its triggered alerts, `resolved` closes the "
        "incident and resolves its open alerts.",
    )


class IncidentPerson(Resource):
    """Somebody who opened an incident, wrote about it or looks after it."""

    id: int | None = Field(description="Null if the account was deleted.")
    username: str

    @classmethod
    def of(cls, person: Person | None) -> "IncidentPerson | None":
        """Present somebody, or nobody."""
        return None if person is None else cls(id=person.id, username=person.username)


class Incident(Resource):
    """An incident."""

    id: int
    iid: int = Field(description="Its number within the project.")
    project_id: int
    title: str
    description: str = Field(description="Markdown.")
    severity: Annotated[str, one_of(*Severity)]
    status: Annotated[str, one_of(*STATUSES)]
    assignees: tuple[IncidentPerson, ...]
    alerts: tuple[int, ...] = Field(
        description=f"Numbers (iid) of its first {MOST_NAMED_ALERTS} alerts."
    )
    alerts_count: int
    close_when_resolved: bool
    rule_id: int | None = Field(description="The rule that opened it.")
    author: IncidentPerson | None = Field(description="Null if a rule or the command line did.")
    created_at: Time
    updated_at: Time
    acknowledged_at: Time | None
    resolved_at: Time | None
    web_url: str

    @classmethod
    def of(cls, view: IncidentView, web_url: str) -> "Incident":
        """Present an incident."""
        return cls(
            id=view.id,
            iid=view.iid,
            project_id=view.project_id,
            title=view.title,
            description=view.description,
            severity=view.severity,
            status=view.status,
            assignees=tuple(
                IncidentPerson(id=person.id, username=person.username) for person in view.assignees
            ),
            alerts=tuple(view.alerts),
            alerts_count=view.alert_count,
            close_when_resolved=view.closes_when_resolved,
            rule_id=view.rule_id,
            author=IncidentPerson.of(view.author),
            created_at=view.created_at,
            updated_at=view.updated_at,
            acknowledged_at=view.acknowledged_at,
            resolved_at=view.resolved_at,
            web_url=web_url,
        )


class IncidentAlertsQuery(KeysetQuery):
    """The alerts of an incident, in the order of their numbers."""


class IncidentAlertsBody(Body):
    """Alerts to be linked."""

    alerts: Numbers = Field(description=f"Numbers (iid) of at most {MOST_AT_ONCE} alerts.")
