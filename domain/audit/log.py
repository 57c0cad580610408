"""Reads the audit log as filtered lists, newest events first."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, or_, select
from sqlalchemy.orm import Session

from domain.audit.events import STREAMED_ONLY, EventKind
from domain.core.clock import format_api_time
from domain.core.database.pagination import (
    MAX_ID,
    KeysetPage,
    KeysetRange,
    PageRequest,
    PageResult,
    fetch_list_page,
    fetch_page,
)
from domain.core.errors import NotFoundError
from domain.core.types.base import get_column_values
from models import AuditEvent, User
from models.case_folding import fold_text

#: Sign-in methods by `amr` value (RFC 8176), except values that indicate several methods.
_METHOD_LABELS = {
    "pwd": "password",
    "otp": "code",
    "hwk": "passkey",
    "swk": "passkey",
    "fed": "identity provider",
}
#: Titles that differ from the stored names, which never change.
_TITLES = {
    EventKind.RECOVERY_CODES_MADE.value: "Recovery codes created",
    EventKind.CODE_INVALIDATED.value: "Authorization code invalidated",
    EventKind.REPOSITORY_DOWNLOADED.value: "Repository downloaded",
    EventKind.CONSENT_REFUSED.value: "Consent denied",
    EventKind.ALERT_PERSON_PAGED.value: "User paged for alert",
    EventKind.ALERT_WOKEN.value: "Alert snooze ended",
    EventKind.INCIDENT_PEOPLE_PAGED.value: "Users paged for incident",
    EventKind.HANDOVER_NOTE_CREATED.value: "Handoff note created",
    EventKind.HANDOVER_NOTE_REMOVED.value: "Handoff note removed",
}
_KINDS_NAMING_OWNER = (
    EventKind.INTEGRATION_CHANGED.value,
    EventKind.ON_CALL_SCHEDULE_CHANGED.value,
    EventKind.ON_CALL_OVERRIDE_CHANGED.value,
    EventKind.ON_CALL_SWAP_CHANGED.value,
    EventKind.ON_CALL_CALENDAR_CHANGED.value,
)
#: Maximum number of characters shown for long identifiers.
_MAX_DETAIL_LENGTHS = {"application_id": 12}
#: Columns by which the API can order the list.
_ORDER_COLUMNS = {"id": AuditEvent.id}


def format_kind_title(kind: str) -> str:
    """Return the title of a kind: `token.revoked` becomes `Token revoked`."""
    if title := _TITLES.get(kind):
        return title
    title = kind.replace(".", " ").replace("_", " ").capitalize()
    return re.sub("^Sign (in|up) ", r"Sign-\1 ", title.replace(" url ", " URL "))


#: All stored kinds with their titles, in alphabetical order.
KIND_TITLES = tuple(
    sorted(
        (kind.value, format_kind_title(kind.value))
        for kind in EventKind
        if kind not in STREAMED_ONLY
    )
)


@dataclass(frozen=True, kw_only=True)
class EventFilter:
    """A filter for events. Empty fields match all events."""

    kind: str = ""
    #: Username of the actor (case-insensitive).
    actor: str = ""
    #: Username of the account that the event concerns (case-insensitive).
    user: str = ""
    actor_id: int | None = None
    user_id: int | None = None
    project_id: int | None = None
    group_id: int | None = None
    #: Name of the affected object, such as the path of a project or the name of a token.
    target: str = ""
    #: IP address of the actor.
    address: str = ""
    #: Start of the period, inclusive.
    since: datetime | None = None
    #: End of the period, exclusive.
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class EventView:
    """An audit event, as shown on web pages and in the API."""

    #: ID of the event, or None if the event is only streamed.
    id: int | None
    created_at: datetime
    kind: str
    actor_id: int | None
    #: Name of the actor, or an empty string for clients, commands and unknown actors.
    actor_name: str
    user_id: int | None
    username: str | None
    project_id: int | None
    group_id: int | None
    subject: str
    details: dict[str, object]
    address: str | None
    user_agent: str | None
    request_id: str | None

    @property
    def title(self) -> str:
        """The title of the event's kind."""
        return format_kind_title(self.kind)

    @property
    def heading(self) -> str:
        """The title including the type of change, such as `Integration created`."""
        change = self.details.get("change")
        return f"{self.title.removesuffix(' changed')} {change}" if change else self.title

    @property
    def actor_description(self) -> str:
        """The name of the actor, or a description of an actor without an account."""
        by = self.details.get("by")
        unknown = {"command": "an operator (command line)", "application": "the application"}
        # Incidents are also opened and closed by rules and alerts.
        other = "the service" if self.kind.startswith("incident.") else "unknown"
        return self.actor_name or unknown.get(str(by), other)

    @property
    def formatted_details(self) -> tuple[tuple[str, str], ...]:
        """The details of the event as formatted names and values, without empty values."""
        return tuple(
            (_format_name(name), _format_detail(name, value)[: _MAX_DETAIL_LENGTHS.get(name)])
            for name, value in self.details.items()
            if name not in {"by", "change"} and value not in (None, "", [])
        )

    @property
    def _entity(self) -> tuple[str, int | None]:
        """Type and ID of the entity that the event concerns. The default is the instance."""
        ids = {"User": self.user_id, "Project": self.project_id, "Group": self.group_id}
        return next(((kind, each) for kind, each in ids.items() if each), ("Instance", None))

    @property
    def _namespace_path(self) -> str | None:
        """The path of the project or group at the time of the event."""
        word = "project" if self.project_id else "group" if self.group_id else None
        return str(self.details.get(word) or self.subject) if word else None

    def convert_to_json_value(self) -> dict[str, object]:
        """Return the event as an audit event object of the API."""
        entity_type, entity_id = self._entity
        return {
            "id": self.id,
            # Clients expect a number, and no user has this ID.
            "author_id": -1 if self.actor_id is None else self.actor_id,
            "entity_id": entity_id,
            "entity_type": entity_type,
            "event_name": self.kind,
            "details": {
                **self.details,
                "author_name": self.actor_name,
                "entity_path": self.username if self.user_id is not None else self._namespace_path,
                "target_details": self.subject,
                "custom_message": self.title,
                "ip_address": self.address,
                "user_agent": self.user_agent,
                "correlation_id": self.request_id,
            },
            "created_at": format_api_time(self.created_at),
        }


def _format_name(name: str) -> str:
    words = "number" if name == "iid" else name.replace("_", " ")
    return f"{words[:-3]} ID" if words.endswith(" id") else words


def _format_detail(name: str, value: object) -> str:
    text = _format_value(value)
    if name != "methods":
        return text
    methods = text.replace(",", " ").split()
    return ", ".join(_METHOD_LABELS[each] for each in methods if each in _METHOD_LABELS) or text


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(str(each) for each in value)
    return str(value)


def _build_user_id_query(username: str) -> ColumnElement[int]:
    wanted = fold_text(username.replace("\x00", "\ufffd"))
    return select(User.id).where(User.username_key == wanted).scalar_subquery()


def _build_target_condition(target: str) -> ColumnElement[bool]:
    wanted = target.replace("\x00", "\ufffd")
    # These events name the project or group in addition to the changed object.
    named = (AuditEvent.details[word].as_string() == wanted for word in ("project", "group"))
    return or_(AuditEvent.subject == wanted, AuditEvent.kind.in_(_KINDS_NAMING_OWNER) & or_(*named))


#: Query conditions by field of the filter.
_CONDITIONS: dict[str, Callable[[Any], ColumnElement[bool]]] = {
    "kind": lambda kind: AuditEvent.kind == kind,
    "actor": lambda name: AuditEvent.actor_id == _build_user_id_query(name),
    "user": lambda name: AuditEvent.user_id == _build_user_id_query(name),
    "actor_id": lambda actor_id: AuditEvent.actor_id == actor_id,
    "target": _build_target_condition,
    "address": lambda address: AuditEvent.address == address,
    "user_id": lambda user_id: AuditEvent.user_id == user_id,
    "project_id": lambda project_id: AuditEvent.project_id == project_id,
    "group_id": lambda group_id: AuditEvent.group_id == group_id,
    "since": lambda moment: AuditEvent.created_at >= moment,
    "until": lambda moment: AuditEvent.created_at < moment,
}


def _build_conditions(event_filter: EventFilter) -> list[ColumnElement[bool]]:
    given = {name: getattr(event_filter, name) for name in _CONDITIONS}
    return [_CONDITIONS[name](value) for name, value in given.items() if value not in (None, "")]


def _build_events_query(event_filter: EventFilter) -> Select[AuditEvent, str]:
    return (
        select(AuditEvent, User.username)
        .outerjoin(User, User.id == AuditEvent.user_id)
        .where(*_build_conditions(event_filter))
    )


def fetch_event_page(
    event_filter: EventFilter, keyset_range: KeysetRange, *, session: Session
) -> KeysetPage[EventView]:
    """Return a page of the audit log, newest events first."""
    return fetch_page(
        _build_events_query(event_filter),
        AuditEvent.id,
        keyset_range,
        session=session,
        view=lambda row: build_event_view(*row),
    )


def list_events(
    event_filter: EventFilter, page_request: PageRequest, *, session: Session
) -> PageResult[EventView]:
    """Return a page of the audit log for the API, with offset or keyset pagination."""
    found = fetch_list_page(
        _build_events_query(event_filter), _ORDER_COLUMNS, page_request, session=session
    )
    return PageResult(
        items=_build_views(found.items), total=found.total, next_cursor=found.next_cursor
    )


def get_event(
    event_id: int, event_filter: EventFilter | None = None, *, session: Session
) -> EventView:
    """Return an event if it matches a filter.

    Raise NotFoundError if the event does not exist or does not match.
    """
    statement = _build_events_query(event_filter or EventFilter()).where(AuditEvent.id == event_id)
    row = session.execute(statement).first() if event_id <= MAX_ID else None
    if row is None:
        raise NotFoundError("Audit event not found.")
    return _build_views([row])[0]


def _build_views(rows: Sequence[Row[*tuple[Any, ...]]]) -> tuple[EventView, ...]:
    # Rows of lists with keyset pagination have a third column.
    return tuple(build_event_view(row[0], row[1]) for row in rows)


def build_event_view(event: AuditEvent, username: str | None) -> EventView:
    """Return the view of an event, with the name of the account that it concerns."""
    return EventView(**get_column_values(event, EventView), username=username)


def read_event_times(
    kind: EventKind, since: datetime, *, maximum: int, session: Session
) -> Sequence[datetime]:
    """Return the times of up to `maximum` events of a kind since a given time, newest first."""
    first = (
        select(AuditEvent.id)
        .where(AuditEvent.created_at >= since)
        .order_by(AuditEvent.created_at)
        .limit(1)
        .scalar_subquery()
    )
    return session.scalars(
        select(AuditEvent.created_at)
        .where(AuditEvent.kind == kind.value, AuditEvent.id >= first)
        .order_by(AuditEvent.kind, AuditEvent.id.desc())
        .limit(maximum)
    ).all()
