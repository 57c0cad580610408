"""Decorators for Git views, which accept a token as the Basic password or as a bearer token."""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from authlib.oauth2.rfc6749 import OAuth2Error
from flask import Flask, current_app, g, request
from sqlalchemy.exc import SQLAlchemyError

from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import DomainError, ForbiddenError
from domain.git.access import (
    ACCEPTED_SCOPES,
    GitService,
    check_can_still_push,
    get_project_for_git,
)
from domain.git.errors import CredentialsNeededError
from domain.git.subprocess import AnswerFunction
from domain.oauth.token_authentication.bearer import (
    Bearer,
    InsufficientScopeError,
    InvalidTokenError,
    get_bearer,
    record_token_use,
)
from domain.projects.views import ProjectView, Viewer
from web.access.bearer_token import TokenLocation, check_key_proof, find_presented_token
from web.access.rate_limits import limit_git_by_user
from web.extensions import db
from web.http.endpoints import AccessDecorator
from web.services import get_current_time, get_services

_log = logging.getLogger("gatebell.git")


class GitAccess(NamedTuple):
    """A Git client's access to a project: the service, the user, and the check for pushes."""

    project: ProjectView
    service: GitService
    user_id: int | None
    #: Function for `hooks/pre-receive` that checks whether the sender of a push may still push.
    #: None for other requests.
    answer: AnswerFunction | None = None


def _require_git_access(view: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*, path: str, **kwargs: Any) -> Any:
        service = _parse_service(kwargs.pop("service", request.args.get("service")))
        return view(access=_identify_and_authorize(path, service), **kwargs)

    return guarded


#: Decorator for the views of Git clients. It requires a token whose scope and user permit the
#: request, unless the project is public. The view receives the project and the service as `access`.
git_access_required = AccessDecorator(
    access="a Git client with a token, or anybody who reads a public project",
    guard=_require_git_access,
    refinement={"is_heavy": False},  # Transfers are forwarded in chunks, with little computation.
)


def _parse_service(name: str | None) -> GitService:
    """Parse the name of a Git service.

    Missing and unknown services require only read permission.
    """
    return GitService.RECEIVE_PACK if name == GitService.RECEIVE_PACK else GitService.UPLOAD_PACK


def _identify_and_authorize(path: str, service: GitService) -> GitAccess:
    found = _find_bearer()
    if found is not None:
        g.limited_user_id = found.user_id
    refusal = g.pop("git_refusal", None)
    return _authorize_counted_request(path, service, found, refusal)


@limit_git_by_user
def _authorize_counted_request(
    path: str, service: GitService, bearer: Bearer | None, refusal: str | None
) -> GitAccess:
    if refusal is not None:
        raise CredentialsNeededError(refusal)
    if bearer is not None:
        _check_scope(bearer, service)
    sender, session = _build_git_viewer(bearer), db.session()
    project = get_project_for_git(path.removesuffix(".git"), service, sender, session=session)
    # A transfer may take hours, and may first have to wait for a process.
    commit_to_release_locks(session)
    if bearer is not None:
        connection = get_services().connections
        record_token_use(
            bearer, address=request.remote_addr, connection=connection, now=get_current_time()
        )
        g.bearer = bearer
    answer = _build_push_check(project) if service is GitService.RECEIVE_PACK else None
    return GitAccess(project=project, service=service, user_id=sender.user_id, answer=answer)


def _build_git_viewer(bearer: Bearer | None) -> Viewer:
    if bearer is None:
        return Viewer(user_id=None)
    return Viewer(user_id=bearer.user_id, is_admin=bearer.is_admin, today=get_current_time().date())


def _build_push_check(project: ProjectView) -> AnswerFunction:
    """Return a function that checks later whether the sender may still push.

    The objects of a push may take hours to arrive. As in other requests, the token's expiry is
    checked at the start of the request. All other conditions are checked when the function is
    called.
    """
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001 - the proxy's own
    token, began_at = _find_git_token() or "", get_current_time()

    def check_push() -> str:
        with app.app_context():
            try:
                _recheck_push_access(project, token, began_at)
            except (DomainError, InvalidTokenError) as refusal:
                return f"{refusal} Nothing was changed."
            except SQLAlchemyError as error:
                _log.error(
                    "Push was rejected because access could not be checked.",
                    extra={"event": "git.access_check_failed", "reason": type(error).__name__},
                )
                return "The server could not check your access. Push again."
        return "yes"

    return check_push


def _recheck_push_access(project: ProjectView, token: str, began_at: datetime) -> None:
    """Check that the sender may still push.

    Raise DomainError or InvalidTokenError if pushing is no longer permitted.
    """
    own = get_services()
    found = get_bearer(token, connection=own.connections, keyring=own.keyring, now=began_at)
    check_can_still_push(project, _build_git_viewer(found), session=db.session())


def _check_scope(bearer: Bearer, service: GitService) -> None:
    accepted = ACCEPTED_SCOPES[service]
    try:
        bearer.require_any_scope(*accepted)
    except InsufficientScopeError as error:
        message = f"The access token must have one of these scopes: {', '.join(accepted)}."
        raise ForbiddenError(message) from error


def _find_bearer() -> Bearer | None:
    """Return the bearer, or None if there are no valid credentials.

    The reason for a rejection is stored in `g`.
    """
    token = _find_git_token()
    if token is None:
        return None
    own, moment = get_services(), get_current_time()
    try:
        found = get_bearer(token, connection=own.connections, keyring=own.keyring, now=moment)
        check_key_proof(found, token, now=moment)
    except InvalidTokenError as error:
        g.git_refusal = f"{error} Use a valid access token as the password."
    except OAuth2Error as error:
        # Git cannot send DPoP proofs (RFC 9449).
        advice = "Git does not support this. Use a personal access token."
        g.git_refusal = f"{error.description} {advice}"
    else:
        return found
    return None


def _find_git_token() -> str | None:
    """Return the token in the request, or None.

    An unreadable header counts as an invalid token.
    """
    if not request.headers.get("Authorization"):
        return None
    token = find_presented_token(TokenLocation.HEADER)
    if token is not None:
        return token
    basic = request.authorization
    password = basic.password if basic is not None and basic.type == "basic" else None
    return password or ""
