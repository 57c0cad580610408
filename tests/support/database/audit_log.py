"""The audit log of a running service."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import requests
from sqlalchemy import func, select

from domain.accounts.users import get_user
from domain.audit.events import Event, EventActor, EventKind, EventSource, store_event
from domain.audit.log import EventFilter, EventView, fetch_event_page
from domain.core.database.pagination import KeysetRange
from models import AuditEvent
from tests.support.accounts.people import Person, database_of, now, unique
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell

API = "/api/v4/audit_events"
PAGE = "/admin/audit"


def list_events_about_user(
    gatebell: LiveGatebell, person: Person, kind: EventKind | None = None
) -> tuple[EventView, ...]:
    """Return the events about an account, newest first."""
    wanted = EventFilter(user=person.username, kind=kind.value if kind else "")
    with database_of(gatebell) as session:
        return fetch_event_page(wanted, KeysetRange(size=100), session=session).items


def get_event_about_user(gatebell: LiveGatebell, person: Person, kind: EventKind) -> EventView:
    """Return the only event of this kind about an account."""
    (event,) = list_events_about_user(gatebell, person, kind)
    return event


def list_events_with_subject(gatebell: LiveGatebell, subject: str) -> list[AuditEvent]:
    """Return the events about a subject, newest first."""
    statement = select(AuditEvent).where(AuditEvent.subject == subject)
    with database_of(gatebell) as session:
        found = session.scalars(statement.order_by(AuditEvent.id.desc())).all()
        session.expunge_all()
        return list(found)


def count_events(gatebell: LiveGatebell) -> int:
    """Return the total number of events."""
    with database_of(gatebell) as session:
        return session.scalar(select(func.count(AuditEvent.id))) or 0


#: Function that writes an event about a user and returns the unique subject of the event.
Write = Callable[..., str]


def write_event(
    gatebell: LiveGatebell, person: Person, *, at: datetime | None = None, **changes: Any
) -> str:
    """Write an event about a user and return the unique subject of the event."""
    subject = changes.pop("subject", None) or unique("thing")
    with database_of(gatebell) as session:
        user = get_user(person.username, session=session)
        actor = changes.pop("actor", EventActor(id=user.id, name=user.username))
        source = changes.pop("source", None)
        event = Event(
            **{"kind": EventKind.TOKEN_REVOKED, "user_id": user.id, "subject": subject, **changes}
        )
        source = source or EventSource(address="192.0.2.1", user_agent="Lynx/2.9")
        source = replace(source, actor=actor)
        store_event(event, source, session=session, now=at or now())
    return subject


def get_events(
    gatebell: LiveGatebell,
    person: Person,
    path: str = "",
    *,
    scopes: str = "read_api",
    **query: Any,
) -> requests.Response:
    """Request events from the API with a new token of a user."""
    token = make_token(gatebell, person, scopes=scopes).clear
    return requests.get(
        f"{gatebell.url}{API}{path}",
        params=query,
        headers={"PRIVATE-TOKEN": token},
        timeout=30,
    )
