"""The user settings page for personal access tokens."""

from typing import Any, ClassVar

from flask import url_for
from flask.typing import ResponseReturnValue

from blueprints.token_pages import TokenPages
from domain.access.scopes import SCOPES_BY_NAME, describe_scopes
from domain.oauth.personal_tokens import actions
from domain.oauth.personal_tokens.token_lists import TokenFilter
from domain.oauth.personal_tokens.tokens import ORDINARY_SCOPES, PERSONAL_SCOPES
from domain.oauth.personal_tokens.types import AccessToken, NewAccessToken, OwnTokenBody
from forms.access_token import AccessTokenForm
from web.access.decorators import get_current_user, sign_in_required, sign_in_required_for_tokens
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work

access_tokens = PageBlueprint(
    "access_tokens", __name__, url_prefix="/-/user_settings/access_tokens"
)


class _PersonalTokenPages(TokenPages[AccessTokenForm]):
    """Pages for the signed-in user's personal access tokens."""

    session_key = "personal_access_token"
    scopes_by_name: ClassVar = {scope.name: scope for scope in describe_scopes(SCOPES_BY_NAME)}

    @property
    def offered_scopes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Scopes that the user can select for a new token."""
        return PERSONAL_SCOPES if get_current_user().is_admin else ORDINARY_SCOPES

    def build_url(self, page: str, **values: Any) -> str:
        return url_for(f"access_tokens.{page}", **values)

    def build_filter(self, *, is_active: bool) -> TokenFilter:
        return TokenFilter(owner_id=get_current_user().id, is_active=is_active)

    def build_form(self) -> AccessTokenForm:
        return AccessTokenForm()

    def create_token(self, form: AccessTokenForm) -> NewAccessToken:
        return actions.create_own_token(get_unit_of_work(), form.build_entered_body(OwnTokenBody))

    def rotate_token(self, token_id: int) -> NewAccessToken:
        return actions.renew_token(get_unit_of_work(), token_id)

    def revoke_token(self, token_id: int) -> AccessToken:
        return actions.revoke_token(get_unit_of_work(), token_id)


_TOKEN_PAGES = _PersonalTokenPages()


@access_tokens.get("")
@sign_in_required
def index() -> ResponseReturnValue:
    """List the user's tokens, and show the value of a newly created token once."""
    return _TOKEN_PAGES.index()


@access_tokens.route("/new", methods=["GET", "POST"])
@sign_in_required_for_tokens
def new() -> ResponseReturnValue:
    """Create a token and show it."""
    return _TOKEN_PAGES.new()


@access_tokens.post("/<int:token_id>/rotate")
@sign_in_required_for_tokens
def rotate(token_id: int) -> ResponseReturnValue:
    """Replace a token with a new token of the same lifetime, and show the new token."""
    return _TOKEN_PAGES.rotate(token_id)


@access_tokens.post("/<int:token_id>/revoke")
@sign_in_required
def revoke(token_id: int) -> ResponseReturnValue:
    """Revoke one of the user's personal access tokens."""
    return _TOKEN_PAGES.revoke(token_id)
