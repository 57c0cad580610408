"""/api/v4/applications: the instance's own applications, for administrators' scripts.

The refused requests of an application are for its owner as well.
"""

from flask import Blueprint

from domain.audit.events import Event, EventKind
from domain.oauth.clients import applications as domain
from domain.oauth.clients.applications import ApplicationView, RegisteredApplication
from domain.oauth.clients.directory import list_instance_wide
from domain.oauth.clients.secrets import renew_secret
from domain.oauth.presented_tokens.bearer import Bearer
from domain.oauth.setting_up.refusals import count_refusals, list_refusals
from domain.types.base import Found
from web.api.operations import operation
from web.api.schemas.oauth.applications import (
    Application,
    ApplicationBody,
    ApplicationQuery,
    NewApplication,
    RefusedRequest,
    RefusedRequestQuery,
)
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now, services, settings

applications = Blueprint("applications", __name__, url_prefix="/applications")


@applications.get("")
@operation("applications.index", query=ApplicationQuery, returns=Application)
def index(query: ApplicationQuery) -> Found[Application]:
    """List the instance-wide applications, newest first."""
    found, total = list_instance_wide(offset=query.offset, limit=query.size, session=db.session())
    return Found(items=[Application.of(each) for each in found], total=total)


@applications.post("")
@operation("applications.create", body=ApplicationBody, returns=NewApplication, status=201)
def create(bearer: Bearer, body: ApplicationBody) -> NewApplication:
    """Create an instance-wide application; only this response contains its secret."""
    registered = domain.register(
        body.details,
        owner_id=bearer.user_id,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
        require_https=settings().require_https_redirect_uris,
    )
    _record(EventKind.APPLICATION_REGISTERED, registered.application)
    return NewApplication.with_secret(registered)


@applications.delete("/<int:application_id>")
@operation("applications.delete")
def delete(application_id: int) -> None:
    """Delete an instance-wide application with all its tokens."""
    application = domain.get_instance_wide(application_id, session=db.session())
    _record(EventKind.APPLICATION_REMOVED, application)
    domain.remove(application.id, session=db.session())


@applications.post("/<int:application_id>/renew-secret")
@operation("applications.renew", returns=NewApplication, status=201)
def renew(application_id: int) -> NewApplication:
    """Renew the secret; the old one stops working immediately."""
    application = domain.get_instance_wide(application_id, session=db.session())
    secret = renew_secret(
        application.id, session=db.session(), keyring=services().keyring, now=now()
    )
    _record(EventKind.SECRET_RENEWED, application)
    return NewApplication.with_secret(RegisteredApplication(application=application, secret=secret))


@applications.get("/<int:application_id>/refused_requests")
@operation("applications.refused_requests", query=RefusedRequestQuery, returns=RefusedRequest)
def refused_requests(
    bearer: Bearer, application_id: int, query: RefusedRequestQuery
) -> Found[RefusedRequest]:
    """List the rejected authorization and token requests of an application, newest first."""
    application = _shown_to(bearer, application_id)
    found = list_refusals(
        application.id, session=db.session(), offset=query.offset, limit=query.size
    )
    return Found(
        items=[RefusedRequest.of(each) for each in found],
        total=count_refusals(application.id, session=db.session()),
    )


def _shown_to(bearer: Bearer, application_id: int) -> ApplicationView:
    if bearer.is_admin:
        return domain.get_any(application_id, session=db.session())
    return domain.get_own(application_id, owner_id=bearer.user_id, session=db.session())


def _record(kind: EventKind, application: ApplicationView) -> None:
    record_event(
        Event(kind=kind, subject=application.name, details={"application_id": application.uid})
    )
