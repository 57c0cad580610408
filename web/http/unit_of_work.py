"""Unit of work of the current request or command, for domain actions."""

from flask import g, has_request_context
from flask_login import current_user

from domain.access.actor import OPERATOR, AccessMethod, Actor, UnitOfWork
from web.extensions import db
from web.http.audit_event_source import build_event_source
from web.http.endpoints import find_endpoint
from web.services import create_unit_of_work


def get_unit_of_work() -> UnitOfWork:
    """Return the unit of work of the current request or command."""
    actor = _get_request_actor() if has_request_context() else OPERATOR
    return create_unit_of_work(actor, db.session())


def _get_request_actor() -> Actor:
    """Return the actor of the request: the user of its token, or the signed-in user of a page."""
    source, bearer = build_event_source(), g.get("bearer")
    if bearer is not None:
        return Actor(
            means=AccessMethod.TOKEN,
            id=bearer.user_id,
            name=bearer.username,
            is_admin=bearer.is_admin,
            scopes=frozenset(bearer.scopes),
            is_application=bearer.belongs_to_application,
            token=bearer,
            source=source,
        )
    endpoint = find_endpoint()
    if endpoint and endpoint.is_page and current_user.is_authenticated:
        return Actor(
            means=AccessMethod.PAGE,
            id=current_user.id,
            name=current_user.username,
            is_admin=current_user.can_administer,
            source=source,
        )
    return Actor(means=AccessMethod.PAGE, source=source)
