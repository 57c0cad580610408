"""Unit of work of the current request or command, for actions of the domain."""

from flask import g, has_request_context
from flask_login import current_user

from domain.access.actor import OPERATOR, Actor, Means, Work
from web.extensions import db
from web.http.audit_events import event_source
from web.http.endpoints import find_endpoint
from web.services import unit_of_work


def work() -> Work:
    """Return the unit of work of the current request or command."""
    actor = _caller() if has_request_context() else OPERATOR
    return unit_of_work(actor, db.session())


def _caller() -> Actor:
    """Return the actor of the request: the user of its token, or the signed-in user of a page."""
    source, bearer = event_source(), g.get("bearer")
    if bearer is not None:
        return Actor(
            means=Means.TOKEN,
            id=bearer.user_id,
            name=bearer.username,
            is_admin=bearer.is_admin,
            scopes=frozenset(bearer.scopes),
            is_application=bearer.is_of_application,
            token=bearer,
            source=source,
        )
    endpoint = find_endpoint()
    if endpoint and endpoint.is_page and current_user.is_authenticated:
        return Actor(
            means=Means.PAGE,
            id=current_user.id,
            name=current_user.username,
            is_admin=current_user.may_administer,
            source=source,
        )
    return Actor(means=Means.PAGE, source=source)
