"""Actor and source of the current request, for the audit log."""

from collections.abc import Callable

from flask import g, request
from flask_login import current_user

from domain.audit.events import STREAMED_ONLY, Event, EventActor, EventSource, store_event
from domain.audit.streamed_events import queue_streamed_event
from web.http.endpoints import find_endpoint
from web.http.transactions import defer_transaction
from web.services import get_current_time


def build_event_source() -> EventSource:
    """Return the actor and the source of the current request."""
    return EventSource(
        actor=_find_actor(),
        sudo_by=_find_sudo_administrator(),
        address=request.remote_addr,
        user_agent=request.user_agent.string,
        request_id=g.get("request_id"),
    )


def _find_actor() -> EventActor | None:
    """Return the token's user, or the signed-in user of a web page.

    The session is loaded only for web pages.
    """
    bearer = g.get("bearer")
    if bearer is not None:
        return EventActor(id=bearer.user_id, name=bearer.username)
    endpoint = find_endpoint()
    if endpoint and endpoint.is_page and current_user.is_authenticated:
        return EventActor(id=current_user.id, name=current_user.username)
    return None


def _find_sudo_administrator() -> EventActor | None:
    """Return the administrator whose token acts as another user."""
    bearer = g.get("bearer")
    if bearer is None or bearer.sudo_by is None:
        return None
    return EventActor(id=bearer.sudo_by.id, name=bearer.sudo_by.username)


def prepare_event_storage(event: Event) -> Callable[[], None]:
    """Return a function that later stores an event of this request in its own transaction.

    Use the function for events that occur after the view has returned. It raises database errors.
    """
    source = build_event_source()
    keep = queue_streamed_event if event.kind in STREAMED_ONLY else store_event
    return defer_transaction(
        lambda session: keep(event, source, session=session, now=get_current_time())
    )
