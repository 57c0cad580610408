"""Records audit events of the current request or command."""

from dataclasses import replace

from flask import g, has_request_context, request
from flask_login import current_user

from domain.audit.events import Actor, Event, EventSource, store_event
from web.extensions import db
from web.http.endpoints import find_endpoint
from web.services import now


def event_source() -> EventSource:
    """Return the actor and the source of the current request."""
    return EventSource(
        actor=_actor(),
        address=request.remote_addr,
        user_agent=request.user_agent.string,
        request_id=g.get("request_id"),
    )


def _actor() -> Actor | None:
    """Return the token's user, or the signed-in user of a page; other requests load no session."""
    bearer = g.get("bearer")
    if bearer is not None:
        return Actor(id=bearer.user_id, name=bearer.username)
    endpoint = find_endpoint()
    if endpoint and endpoint.is_page and current_user.is_authenticated:
        return Actor(id=current_user.id, name=current_user.username)
    return None


def record_event(event: Event) -> None:
    """Store an event in the transaction of this request, which only commits if the view returns.

    Events of commands have no actor, and `by: command` in their details.
    """
    if not has_request_context():
        by_command = replace(event, details={**(event.details or {}), "by": "command"})
        store_event(by_command, EventSource(), session=db.session(), now=now())
        return
    store_event(event, event_source(), session=db.session(), now=now())
