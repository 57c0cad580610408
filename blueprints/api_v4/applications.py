"""/api/v4/applications: the instance's own applications, for administrators' scripts."""

from typing import Any

from flask import Blueprint, Response

from domain.audit.events import Event, EventKind
from domain.errors import ForbiddenError, InvalidError
from domain.oauth.clients import applications as domain
from domain.oauth.clients.applications import ApplicationDetails, ApplicationView
from domain.oauth.clients.directory import list_instance_wide
from domain.oauth.clients.secrets import renew_secret
from domain.oauth.presented_tokens.bearer import Bearer
from web.access.marks import bearer as with_bearer
from web.api import parameters as read
from web.api.offset_pages import list_query, offset_response, requested_page
from web.extensions import db
from web.http.audit_events import record_event
from web.http.json_responses import json_response
from web.services import now, services, settings

applications = Blueprint("applications", __name__)
_REQUIRED = ("name", "redirect_uri", "scopes")


@applications.get("/applications")
@with_bearer("api", "read_api", "read")
def index(bearer: Bearer) -> Response:
    """List the applications of the instance, the newest first."""
    _require_administrator(bearer)
    list_query()
    wanted_page = requested_page()
    found, total = list_instance_wide(
        offset=wanted_page.offset, limit=wanted_page.size, session=db.session()
    )
    return offset_response([each.as_json() for each in found], wanted_page, total=total)


@applications.post("/applications")
@with_bearer("api")
def create(bearer: Bearer) -> Response:
    """Register an application of the instance; only this response contains its secret."""
    _require_administrator(bearer)
    registered = domain.register(
        _details(),
        owner_id=bearer.user_id,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
        require_https=settings().require_https_redirect_uris,
    )
    _record(EventKind.APPLICATION_REGISTERED, registered.application)
    return _shown_once(registered.application, registered.secret)


@applications.delete("/applications/<int:application_id>")
@with_bearer("api")
def delete(bearer: Bearer, application_id: int) -> Response:
    """Delete an application of the instance with all its tokens."""
    _require_administrator(bearer)
    application = domain.get_instance_wide(application_id, session=db.session())
    _record(EventKind.APPLICATION_REMOVED, application)
    domain.remove(application.id, session=db.session())
    return Response(status=204)


@applications.post("/applications/<int:application_id>/renew-secret")
@with_bearer("api")
def renew(bearer: Bearer, application_id: int) -> Response:
    """Renew the secret; the old one stops working immediately."""
    _require_administrator(bearer)
    application = domain.get_instance_wide(application_id, session=db.session())
    secret = renew_secret(
        application.id, session=db.session(), keyring=services().keyring, now=now()
    )
    _record(EventKind.SECRET_RENEWED, application)
    return _shown_once(application, secret)


def _require_administrator(bearer: Bearer) -> None:
    if not bearer.is_admin:
        message = "Only administrators keep the applications of the instance."
        raise ForbiddenError(message)


def _details() -> ApplicationDetails:
    """Return the requested details; an empty redirect_uri is allowed, a missing one is not."""
    given = read.all_parameters()
    for name in _REQUIRED:
        if given.get(name) is None or (not given[name] and name != "redirect_uri"):
            message = f"{name} is {'empty' if name in given else 'missing'}"
            raise InvalidError(message, field=name)
    is_confidential = read.yes_or_no(given, "confidential")
    return ApplicationDetails(
        name=read.text(given, "name"),
        redirect_uris=tuple(dict.fromkeys(read.text(given, "redirect_uri").split())),
        scopes=" ".join(read.words(given, "scopes")),
        confidential=is_confidential is not False,
        is_instance_wide=True,
    )


def _record(kind: EventKind, application: ApplicationView) -> None:
    record_event(
        Event(kind=kind, subject=application.name, details={"application_id": application.uid})
    )


def _shown_once(application: ApplicationView, secret: str) -> Response:
    body: dict[str, Any] = {**application.as_json(), "secret": secret}
    response = json_response(body, 201)
    response.headers["Cache-Control"] = "no-store"
    return response
