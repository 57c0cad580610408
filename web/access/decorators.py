"""Decorators that declare the permissions that a view requires.

Every view has exactly one of these decorators (`web/http/endpoints.py`).
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from inspect import signature
from typing import Any, cast

from flask import flash, g, redirect, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import UserMixin, current_user

from domain.access.checks import check_feature, check_not_archived, check_project_state, check_role
from domain.access.features import find_feature
from domain.access.permissions import get_permission
from domain.access.roles import Ability, Role
from domain.accounts.sign_in.sessions import ActiveSignIn, find_sign_in
from domain.core.errors import ForbiddenError, NotFoundError
from domain.oauth.protocol import ProtocolError
from domain.oauth.token_authentication.bearer import (
    Bearer,
    InvalidTokenError,
    TokenRejectionReason,
    get_access_token_bearer,
    get_bearer,
    record_token_use,
)
from domain.projects.access import get_group, get_project
from domain.projects.views import GroupView, ProjectView, Viewer
from web.access.bearer_token import (
    API_TOKEN_LOCATIONS,
    USERINFO_TOKEN_LOCATIONS,
    check_key_proof,
    find_presented_token,
)
from web.access.rate_limits import limit_api_by_user
from web.access.return_urls import shorten_return_url
from web.extensions import db
from web.http.endpoints import AccessDecorator, Guard
from web.http.extensions import login_manager
from web.http.public_urls import find_nearest_page_url, get_current_path_and_query
from web.services import get_current_time, get_services, get_settings


class CurrentUser(UserMixin):  # type: ignore[misc]
    """Signed-in user of this browser, as a user object for Flask-Login."""

    def __init__(self, token: str, sign_in: ActiveSignIn) -> None:
        """Store the account and its sign-in."""
        self.token = token
        self.sign_in_id = sign_in.id
        self.auth_time = sign_in.created_at
        self.has_proven = sign_in.is_proof
        self.methods = sign_in.methods
        user = self.user = sign_in.user
        self.id, self.username, self.name = user.id, user.username, user.name
        self.email, self.time_zone, self.is_admin = user.email, user.time_zone, user.is_admin

    def get_id(self) -> str:
        """Return the sign-in's token, which Flask-Login stores in place of the user ID."""
        return self.token

    @property
    def is_fresh(self) -> bool:
        """True if the user proved their identity recently enough to act as an administrator."""
        lifetime = timedelta(seconds=get_settings().administrator_proof_seconds)
        return self.has_proven and get_current_time() - self.auth_time <= lifetime

    @property
    def can_administer(self) -> bool:
        """True if the request has the rights of an administrator.

        Any change requires a recent sign-in.
        """
        return self.is_admin and (request.method != "POST" or self.is_fresh)


@login_manager.user_loader  # type: ignore[untyped-decorator]
def load_current_user(token: str) -> CurrentUser | None:
    """Return the user of a valid sign-in token, or None."""
    if g.get("asks_no_database"):
        return None
    found = find_sign_in(
        token, session=db.session(), keyring=get_services().keyring, now=get_current_time()
    )
    if found is None:
        return None
    return CurrentUser(token, found)


def get_current_user() -> CurrentUser:
    """Return the signed-in user.

    Only views that require a sign-in may call this function.
    """
    return cast("CurrentUser", current_user._get_current_object())  # noqa: SLF001 - the proxy's own


def get_request_viewer() -> Viewer:
    """Return the viewer of this request, who may be anonymous."""
    if not current_user.is_authenticated:
        return Viewer(user_id=None)
    return Viewer(
        user_id=current_user.id,
        is_admin=current_user.can_administer,
        today=get_current_time().date(),
    )


#: Decorator for views that anyone may call.
open_to_anyone = AccessDecorator(access="anyone")
#: Decorator for views that authenticate an OAuth client themselves (RFC 6749 section 2.3).
authenticates_client = AccessDecorator(access="an OAuth client")
#: Decorator for receivers, which check an integration's key themselves.
authenticates_integration = AccessDecorator(access="a sender with an integration key")
#: Decorator for heartbeat views, whose URL itself is the secret.
authenticates_heartbeat_url = AccessDecorator(access="a job that knows the URL of its heartbeat")
#: Decorator for views that check the secret in the registry's configuration.
checks_registry_secret = AccessDecorator(access="the container registry, with its secret")


def redirect_to_sign_in() -> ResponseReturnValue:
    """Redirect to the sign-in page, which redirects back to the current page after the sign-in."""
    return redirect(
        url_for("sessions.sign_in", next=shorten_return_url(get_current_path_and_query()))
    )


def _require_sign_in(view: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if not current_user.is_authenticated:
            return redirect_to_sign_in()
        return view(*args, **kwargs)

    return guarded


def has_recent_sign_in() -> bool:
    """Return whether the user signed in recently enough to act as an administrator."""
    return get_current_user().is_fresh


def _redirect_old_sign_ins(view: Callable[..., Any]) -> Callable[..., Any]:
    """Return a view that requests a new sign-in if the current sign-in is not recent enough.

    Until administrators sign in again, they can only make changes that their own roles permit.
    """

    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return view(*args, **kwargs)
        except (ForbiddenError, NotFoundError):
            if not current_user.is_authenticated or not _is_change_with_old_sign_in():
                raise
            db.session.rollback()
            return _redirect_to_new_sign_in()

    return guarded


def _build_administrator_guard(*proven: str) -> Guard:
    """Return the guard for administrators.

    HTTP methods in `proven` require a recent sign-in.
    """

    def guard(view: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            if not current_user.is_authenticated:
                return redirect_to_sign_in()
            if not current_user.is_admin:
                raise NotFoundError("Page not found.")
            if request.method in proven and not has_recent_sign_in():
                return _redirect_to_new_sign_in()
            return view(*args, **kwargs)

        return guarded

    return guard


#: Decorator for views that only administrators of the instance may call. Other users receive 404. A
#: change requires a recent sign-in, so that an unattended browser or a copied cookie is not
#: sufficient.
administrator_required = AccessDecorator(
    access="an administrator, for changes freshly signed in",
    guard=_build_administrator_guard("POST"),
)
#: Decorator like `administrator_required` that also requires a recent sign-in for reading. It
#: protects views that export data.
recent_administrator_required = AccessDecorator(
    access="an administrator, freshly signed in",
    guard=_build_administrator_guard("POST", "GET", "HEAD"),
)


def _is_change_with_old_sign_in() -> bool:
    """Return whether an administrator who signed in too long ago is making a change."""
    return request.method == "POST" and current_user.is_admin and not has_recent_sign_in()


#: Decorator for views that require a signed-in user. Other visitors are redirected to the sign-in
#: page.
sign_in_required = AccessDecorator(
    access="a signed-in user", guard=lambda view: _redirect_old_sign_ins(_require_sign_in(view))
)


def _require_sign_in_for_tokens(view: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if _is_change_with_old_sign_in():
            return _redirect_to_new_sign_in()
        return view(*args, **kwargs)

    return _require_sign_in(guarded)


#: Decorator like `sign_in_required`, but a POST from an administrator requires a recent sign-in.
#: The view creates a token that may have an administrator's rights.
sign_in_required_for_tokens = AccessDecorator(
    access="a signed-in user, an administrator freshly", guard=_require_sign_in_for_tokens
)


def _require_recent_sign_in(view: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        return view(*args, **kwargs) if has_recent_sign_in() else _redirect_to_new_sign_in()

    return _require_sign_in(guarded)


#: Decorator like `sign_in_required` that requires every user to have signed in recently. The view
#: changes the credentials of the account.
recent_sign_in_required = AccessDecorator(
    access="a signed-in user, freshly", guard=_require_recent_sign_in
)


def _redirect_to_new_sign_in() -> ResponseReturnValue:
    """Redirect to the sign-in page, since the user signed in too long ago for the action.

    After the sign-in, the user returns to the current page or the nearest page above its URL. If
    the action concerned an account, the user returns to the page of the account.
    """
    flash("Sign in again to confirm your identity, then repeat the action.", "warning")
    user_id = (request.view_args or {}).get("user_id")
    begin = (
        find_nearest_page_url() if user_id is None else url_for("admin.users.show", user_id=user_id)
    )
    return redirect(url_for("sessions.sign_in", again="yes", next=shorten_return_url(begin)))


def project_role_required(
    *, at_least: Role, ability: Ability | None = None, in_archived: bool = False
) -> AccessDecorator:
    """Require a role, or a custom role with an ability.

    The view receives the project as `project` instead of `project_path`. Pages of disabled features
    return 404. An archived project accepts a POST only in views with `in_archived`.
    """

    def guard(view: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*, project_path: str, **kwargs: Any) -> Any:
            if not current_user.is_authenticated:
                return redirect_to_sign_in()
            project = get_project(project_path, get_request_viewer(), session=db.session())
            check_role(project, at_least, ability)
            feature = find_feature(request.blueprint or "")
            if feature is not None:
                check_feature(project, feature)
            if request.method == "POST" and not in_archived:
                check_not_archived(project)
            return view(project=_store_project(project), **kwargs)

        return _redirect_old_sign_ins(guarded)

    return AccessDecorator(access=f"a member, {at_least.label} or higher", guard=guard)


#: Groups of operations with changes that affect access rights.
_ACCESS_GRANTING_RESOURCES = frozenset(
    {"former_paths", "invitations", "members", "resource_tokens"}
)
_SHARING_ACTIONS = frozenset({"projects.share", "projects.unshare"})


def permission_required(name: str, *, to_post: str = "") -> AccessDecorator:
    """Require the permission of an action (`domain/access/permissions.py`).

    `to_post` names another action for POST. The view receives the project as `project` instead of
    `project_path`, or the group as `group` instead of `group_path`. If the view has a `holder`
    parameter, it receives the project or group as `holder`.

    Administrators count as owners of everything. They need a recent sign-in for changes that are
    reserved for owners, and for changes that affect access rights.
    """
    permission, posting = get_permission(name), get_permission(to_post or name)
    room = name.partition(".")[0]
    gives_access = room in _ACCESS_GRANTING_RESOURCES or name in _SHARING_ACTIONS

    def check(found: ProjectView | GroupView) -> None:
        changes = request.method == "POST"
        asked = posting if changes else permission
        check_role(found, asked.get_minimum_role(is_group=found.is_group), asked.ability)
        check_project_state(asked, room, found, changes=changes)

    def guard(view: Callable[..., Any]) -> Callable[..., Any]:
        takes_either = "holder" in signature(view).parameters

        def guarded(*, project_path: str = "", group_path: str = "", **kwargs: Any) -> Any:
            if not current_user.is_authenticated:
                return redirect_to_sign_in()
            is_of_owners = posting.get_minimum_role(is_group=bool(group_path)) is Role.OWNER
            if (is_of_owners or gives_access) and _is_change_with_old_sign_in():
                return _redirect_to_new_sign_in()
            if group_path:
                group = get_group(group_path, get_request_viewer(), session=db.session())
                check(group)
                g.group = group
                return view(**{"holder" if takes_either else "group": group}, **kwargs)
            project = get_project(project_path, get_request_viewer(), session=db.session())
            check(project)
            found = _store_project(project)
            return view(**{"holder" if takes_either else "project": found}, **kwargs)

        return _redirect_old_sign_ins(guarded)

    least, in_group = permission.least, permission.in_group
    role = f"{least.label if least else 'any role'} or higher"
    of_group = f"; of a group, {in_group.label}" if in_group not in {None, least} else ""
    return AccessDecorator(access=f"a member, {role}{of_group}", guard=guard)


def can_open_group(path: str, name: str) -> bool:
    """Return whether the viewer may open a group's page for the given action."""
    permission = get_permission(name)
    try:
        group = get_group(path, get_request_viewer(), session=db.session())
        check_role(group, permission.get_minimum_role(is_group=True), permission.ability)
    except (ForbiddenError, NotFoundError):
        return False
    return True


def _store_project(project: ProjectView) -> ProjectView:
    g.project = project
    return project


def authenticate_bearer(accepted_scopes: tuple[str, ...]) -> Bearer:
    """Count the request, and return the bearer of its token.

    Raise InvalidTokenError, AmbiguousTokenError or MissingKeyProofError if the token is missing or
    not valid. Raise InsufficientScopeError if the token has none of the accepted scopes.
    """
    _store_api_caller()
    return _get_accepted_bearer(accepted_scopes)


def find_bearer(*accepted: str) -> Bearer | None:
    """Return the bearer of a request, or None if the request has no token.

    Raise InvalidTokenError, AmbiguousTokenError or MissingKeyProofError if the token is not valid.
    Raise InsufficientScopeError if the token has none of the accepted scopes.
    """
    if find_presented_token(*API_TOKEN_LOCATIONS) is None:
        return None
    return authenticate_bearer(accepted)


def find_bearer_or_count_anonymous(accepted_scopes: tuple[str, ...]) -> Bearer | None:
    """Return the bearer as `find_bearer` does, and count requests without a token by IP address."""
    found = find_bearer(*accepted_scopes)
    if found is None:
        _count_anonymous_request()
    return found


@limit_api_by_user
def _count_anonymous_request() -> None:
    """Count a request without a token.

    The decorator counts the request, so the function itself does nothing.
    """


def _store_api_caller() -> None:
    """Store the bearer, or the authentication error, in `g`.

    The request is counted before the bearer or the error is used.
    """
    try:
        found = _get_api_bearer(get_current_time())
    except (ProtocolError, InvalidTokenError) as refusal:
        g.api_caller = refusal
    else:
        g.api_caller, g.limited_user_id = found, found.user_id


@limit_api_by_user
def _get_accepted_bearer(accepted_scopes: tuple[str, ...]) -> Bearer:
    """Return the stored bearer if it has one of the scopes.

    Raise the stored error if there is one.
    """
    found: Bearer | ProtocolError | InvalidTokenError = g.api_caller
    if isinstance(found, Exception):
        raise found
    found.require_any_scope(*accepted_scopes)
    record_token_use(
        found,
        address=request.remote_addr,
        connection=get_services().connections,
        now=get_current_time(),
    )
    g.bearer = found
    return found


def _get_api_bearer(moment: datetime) -> Bearer:
    token = find_presented_token(*API_TOKEN_LOCATIONS)
    if token is None:
        raise InvalidTokenError(TokenRejectionReason.MISSING)
    own = get_services()
    found = get_bearer(token, connection=own.connections, keyring=own.keyring, now=moment)
    check_key_proof(found, token, now=moment)
    return found


def oauth_token_required(*accepted: str) -> AccessDecorator:
    """Require an OAuth access token with one of the given scopes.

    Personal access tokens are rejected.
    """

    def guard(view: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            return view(*args, bearer=_get_oauth_bearer(accepted), **kwargs)

        return guarded

    return AccessDecorator(access=f"an OAuth token with {' or '.join(accepted)}", guard=guard)


def _get_oauth_bearer(accepted_scopes: tuple[str, ...]) -> Bearer:
    token = find_presented_token(*USERINFO_TOKEN_LOCATIONS)
    if token is None:
        raise InvalidTokenError(TokenRejectionReason.MISSING)
    moment, connection = get_current_time(), get_services().connections
    found = get_access_token_bearer(
        token, connection=connection, keyring=get_services().keyring, now=moment
    )
    check_key_proof(found, token, now=moment)
    found.require_any_scope(*accepted_scopes)
    record_token_use(found, address=request.remote_addr, connection=connection, now=moment)
    return found
