"""Audit events as API resources, and the query parameters of their lists."""

from ipaddress import ip_address
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from domain.audit.log import KIND_TITLES, EventFilter, EventView
from domain.core.types.base import GitLabQuery, Id, Query, RequestTimeOrDay, Resource, Text, Time
from domain.core.types.pagination import PagedQuery

_MAX_NAME_LENGTH = 255
_KIND_NAMES = frozenset(name for name, _ in KIND_TITLES)


def _check_kind(name: str) -> str:
    if name and name not in _KIND_NAMES:
        raise ValueError("is not the name of an event. Use a name from /admin/audit")
    return name


def _normalize_address(text: str) -> str:
    try:
        return str(ip_address(text)) if text else ""
    except ValueError as error:
        raise ValueError("must be an IP address") from error


_Name = Annotated[Text, Field(max_length=_MAX_NAME_LENGTH)]


class AuditEventFilters(Query):
    """Filter parameters for audit events. An event must match all given parameters."""

    entity_type: Literal["User", "Project", "Group"] | None = Field(
        default=None,
        description=(
            "Type of the entity that the event concerns. Every type excludes events that concern "
            "the whole instance."
        ),
    )
    entity_id: Id | None = Field(
        default=None,
        description=(
            "ID of the entity that the event concerns. If `entity_type` is omitted, this is a user "
            "ID."
        ),
    )
    event_name: Annotated[str, AfterValidator(_check_kind)] = Field(
        default="", description="Name of the event, such as `token.revoked`."
    )
    author_id: Id | None = Field(
        default=None, description="ID of the user who performed the action."
    )
    author: _Name = Field(default="", description="Username of the user who performed the action.")
    target: _Name = Field(
        default="",
        description="Subject of the event, such as the path of a project or the name of a token.",
    )
    ip_address: Annotated[str, AfterValidator(_normalize_address)] = ""
    created_after: RequestTimeOrDay | None = Field(
        default=None, description="Start of the period, inclusive."
    )
    created_before: RequestTimeOrDay | None = Field(
        default=None, description="End of the period, exclusive."
    )

    @property
    def event_filter(self) -> EventFilter:
        """The event filter that corresponds to the parameters."""
        return EventFilter(
            kind=self.event_name,
            actor=self.author,
            actor_id=self.author_id,
            user_id=self.entity_id if self.entity_type in {None, "User"} else None,
            project_id=self.entity_id if self.entity_type == "Project" else None,
            group_id=self.entity_id if self.entity_type == "Group" else None,
            target=self.target,
            address=self.ip_address,
            since=self.created_after,
            until=self.created_before,
        )


class AuditEventQuery(AuditEventFilters, PagedQuery, GitLabQuery):
    """Query parameters for a list of events, newest first."""


class NamespaceAuditEventQuery(PagedQuery, GitLabQuery):
    """Query parameters for a list of events in a project or a group, newest first."""

    created_after: RequestTimeOrDay | None = Field(
        default=None, description="Start of the period, inclusive."
    )
    created_before: RequestTimeOrDay | None = Field(
        default=None, description="End of the period, exclusive."
    )


class AuditEvent(Resource):
    """A security-relevant action, its author, and the user, project or group that it concerns."""

    id: int
    author_id: int
    entity_id: int | None
    entity_type: Literal["User", "Project", "Group", "Instance"]
    event_name: str
    details: dict[str, Any]
    created_at: Time

    @classmethod
    def from_view(cls, view: EventView) -> "AuditEvent":
        """Build the API resource from an event."""
        return cls.model_validate({**view.convert_to_json_value(), "created_at": view.created_at})
