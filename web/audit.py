"""Writes down who did what in this request."""

from flask import g, request
from flask_login import current_user

from domain.audit.events import Event, Origin, record
from web.extensions import db
from web.services import now


def origin() -> Origin:
    """Return who this request comes from, as far as we know."""
    is_known = current_user.is_authenticated
    return Origin(
        actor_id=current_user.id if is_known else None,
        actor_name=current_user.username if is_known else "",
        address=request.remote_addr,
        user_agent=request.user_agent.string,
        request_id=g.get("request_id"),
    )


def note(event: Event) -> None:
    """Keep an event with the transaction of this request."""
    record(event, origin(), session=db.session(), now=now())
