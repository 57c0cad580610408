"""Access marks of views. Every view has exactly one of them, which a test checks."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, TypeVar, cast

from flask import flash, g, redirect, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import UserMixin, current_user

from domain.accounts.roles import Role
from domain.accounts.signing_in.sessions import find_sign_in
from domain.errors import NotFoundError
from domain.oauth.messages import ProtocolError
from domain.oauth.presented_tokens.bearer import (
    Bearer,
    BearerRefusedError,
    Refusal,
    get_access_token_bearer,
    get_bearer,
    note_use,
)
from domain.projects.access import get_project_for
from domain.projects.views import ProjectView, Viewer
from models import User
from web.extensions import db, login_manager
from web.http.bearer_token import (
    API_LOCATIONS,
    USERINFO_LOCATIONS,
    presented_token,
)
from web.http.key_proofs import check_key
from web.http.public_address import this_page
from web.http.rate_limits import check_api_rate
from web.services import now, services, settings

View = TypeVar("View", bound=Callable[..., Any])


class CurrentUser(UserMixin):  # type: ignore[misc]
    """The signed-in user of this browser, as Flask-Login's user object."""

    def __init__(self, token: str, sign_in_id: int, auth_time: datetime, user: User) -> None:
        """Store the account and its sign-in."""
        self.token = token
        self.sign_in_id = sign_in_id
        self.auth_time = auth_time
        self.user = user

    def get_id(self) -> str:
        """Return the sign-in's token, which Flask-Login stores in place of the user's id."""
        return self.token

    @property
    def id(self) -> int:
        """The account's id."""
        return self.user.id

    @property
    def username(self) -> str:
        """The user name."""
        return self.user.username

    @property
    def name(self) -> str:
        """The display name."""
        return self.user.name

    @property
    def email(self) -> str:
        """The e-mail address."""
        return self.user.email

    @property
    def is_admin(self) -> bool:
        """Whether this is an administrator of the instance."""
        return self.user.is_admin


@login_manager.user_loader  # type: ignore[untyped-decorator]
def load_current_user(token: str) -> CurrentUser | None:
    """Return the user of a live sign-in token, or None."""
    if g.get("is_database_away"):
        return None
    found = find_sign_in(token, session=db.session(), keyring=services().keyring, now=now())
    if found is None:
        return None
    sign_in, user = found
    return CurrentUser(token, sign_in.id, sign_in.created_at, user)


def get_current_user() -> CurrentUser:
    """Return the signed-in user; only for views that require one."""
    return cast("CurrentUser", current_user._get_current_object())  # noqa: SLF001 - the proxy's own


def viewer() -> Viewer:
    """Return the viewer of this request, signed in or anonymous."""
    if not current_user.is_authenticated:
        return Viewer(user_id=None)
    return Viewer(user_id=current_user.id, is_admin=current_user.is_admin)


@dataclass(frozen=True, kw_only=True)
class Access:
    """The access rule of a view, in words."""

    words: str


def access_of(view: Callable[..., Any]) -> Access | None:
    """Return the access mark of a view, or None."""
    return getattr(view, "gatebell_access", None)


def _marked(view: View, words: str) -> View:
    if access_of(view) is not None:
        message = f"{view.__name__} says twice who may call it"
        raise TypeError(message)
    view.gatebell_access = Access(words=words)  # type: ignore[attr-defined]
    return view


def open_to_anyone(view: View) -> View:
    """Allow everybody to call the view."""
    return _marked(view, "anyone")


def checks_its_client(view: View) -> View:
    """Leave the check to the protocol: the view authenticates an OAuth client (RFC 6749, 2.3)."""
    return _marked(view, "an OAuth client")


def checks_its_key(view: View) -> View:
    """Leave the check to the receiver: the view compares an integration's key."""
    return _marked(view, "a sender with an integration key")


def _to_sign_in() -> ResponseReturnValue:
    return redirect(url_for("sessions.sign_in", next=this_page()))


def signed_in(view: View) -> View:
    """Require a signed-in user; redirect others to the sign-in page."""

    @wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if not current_user.is_authenticated:
            return _to_sign_in()
        return view(*args, **kwargs)

    return _marked(cast("View", guarded), "a signed-in user")


def administrator(view: View) -> View:
    """Require an administrator of the instance; other users get 404."""

    @wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if not current_user.is_authenticated:
            return _to_sign_in()
        if not current_user.is_admin:
            message = "There is no such page."
            raise NotFoundError(message)
        return view(*args, **kwargs)

    return _marked(cast("View", guarded), "an administrator")


def administrator_afresh(view: View) -> View:
    """Require an administrator who has signed in recently.

    For changes to who can use an account, so that an unattended browser or a copied cookie is not
    enough. Others are sent to sign in again and return to the page of the account.
    """

    @wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        lifetime = timedelta(seconds=settings().administrator_proof_seconds)
        if request.method == "POST" and now() - get_current_user().auth_time > lifetime:
            return _to_sign_in_again(kwargs.get("user_id"))
        return view(*args, **kwargs)

    return administrator(cast("View", guarded))


def _to_sign_in_again(user_id: int | None) -> ResponseReturnValue:
    flash("This needs a fresh sign-in: prove that it is you, then do it once more.", "warning")
    begin = url_for("admin.users.show", user_id=user_id) if user_id else this_page()
    return redirect(url_for("sessions.sign_in", again="yes", next=begin))


def project_member(*, at_least: Role) -> Callable[[View], View]:
    """Require a role; the view gets the project as `project` instead of `project_path`."""

    def mark(view: View) -> View:
        @wraps(view)
        def guarded(*, project_path: str, **kwargs: Any) -> Any:
            if not current_user.is_authenticated:
                return _to_sign_in()
            project = get_project_for(
                project_path, viewer(), at_least=at_least, session=db.session()
            )
            return view(project=_shown(project), **kwargs)

        return _marked(cast("View", guarded), f"a member, {at_least.label} or higher")

    return mark


def _shown(project: ProjectView) -> ProjectView:
    g.project = project
    return project


def bearer(*accepted: str) -> Callable[[View], View]:
    """Require a token with one of these scopes; the view gets it as `bearer`."""

    def mark(view: View) -> View:
        @wraps(view)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            return view(*args, bearer=_bearer(accepted), **kwargs)

        return _marked(cast("View", guarded), f"a token with {' or '.join(accepted)}")

    return mark


def find_bearer(*accepted: str) -> Bearer | None:
    """Return the token of a request, or None without one; an invalid token is an error."""
    return None if presented_token(*API_LOCATIONS) is None else _bearer(accepted)


def _bearer(accepted: tuple[str, ...]) -> Bearer:
    moment, connection = now(), services().connections
    try:
        found = _api_bearer(moment)
    except (ProtocolError, BearerRefusedError):
        check_api_rate(None)
        raise
    check_api_rate(found.user_id)
    found.require(*accepted)
    note_use(found, address=request.remote_addr, connection=connection, now=moment)
    g.bearer = found
    return found


def _api_bearer(moment: datetime) -> Bearer:
    token = presented_token(*API_LOCATIONS)
    if token is None:
        raise BearerRefusedError(Refusal.MISSING)
    found = get_bearer(
        token, connection=services().connections, keyring=services().keyring, now=moment
    )
    check_key(found, token, now=moment)
    return found


def oauth_bearer(*accepted: str) -> Callable[[View], View]:
    """Require an OAuth access token, not a personal one, with one of these scopes."""

    def mark(view: View) -> View:
        @wraps(view)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            return view(*args, bearer=_oauth_bearer(accepted), **kwargs)

        return _marked(cast("View", guarded), f"an OAuth token with {' or '.join(accepted)}")

    return mark


def _oauth_bearer(accepted: tuple[str, ...]) -> Bearer:
    token = presented_token(*USERINFO_LOCATIONS)
    if token is None:
        raise BearerRefusedError(Refusal.MISSING)
    moment, connection = now(), services().connections
    found = get_access_token_bearer(
        token, connection=connection, keyring=services().keyring, now=moment
    )
    check_key(found, token, now=moment)
    found.require(*accepted)
    note_use(found, address=request.remote_addr, connection=connection, now=moment)
    return found
