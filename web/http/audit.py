"""Writes down who did what in this request, or by this command."""

from dataclasses import replace

from flask import g, has_request_context, request
from flask_login import current_user

from domain.audit.events import Actor, Event, Origin, record
from web.extensions import db
from web.http.errors import is_page
from web.services import now


def origin() -> Origin:
    """Return who this request comes from, as far as we know."""
    return Origin(
        actor=_actor(),
        address=request.remote_addr,
        user_agent=request.user_agent.string,
        request_id=g.get("request_id"),
    )


def _actor() -> Actor | None:
    """Return the token's user, or a page's visitor; machines are not asked for their cookies."""
    bearer = g.get("bearer")
    if bearer is not None:
        return Actor(id=bearer.user_id, name=bearer.username)
    if is_page() and current_user.is_authenticated:
        return Actor(id=current_user.id, name=current_user.username)
    return None


def note(event: Event) -> None:
    """Keep an event with the transaction of this request; a refusal has to be returned to keep it.

    What an operator does by a command has no actor, and says so in its details.
    """
    if not has_request_context():
        by_command = replace(event, details={**(event.details or {}), "by": "command"})
        record(by_command, Origin(), session=db.session(), now=now())
        return
    record(event, origin(), session=db.session(), now=now())
