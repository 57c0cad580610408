"""Access token pages shared by users, projects and groups."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Generic, TypeVar

from flask import flash, redirect, render_template, session
from flask.typing import ResponseReturnValue

from domain.access.roles import Role
from domain.access.scopes import Scope
from domain.core.database.pagination import get_choice
from domain.core.errors import InvalidError
from domain.oauth.personal_tokens import token_lists
from domain.oauth.personal_tokens.token_lists import TokenFilter, TokenView
from domain.oauth.personal_tokens.tokens import ORDINARY_SCOPES
from domain.oauth.personal_tokens.types import (
    AccessToken,
    NewAccessToken,
    NewResourceAccessToken,
)
from domain.projects.views import Namespace
from forms.access_token import AccessTokenForm
from web.extensions import db
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    build_page_links,
    get_list_query,
    get_requested_keyset_range,
)
from web.services import get_current_time, get_services, get_token_lifetimes

TokenForm = TypeVar("TokenForm", bound=AccessTokenForm)
CreatedToken = NewAccessToken | NewResourceAccessToken


class TokenPages(ABC, Generic[TokenForm]):
    """The views shared by all access token pages."""

    #: Session key that stores the encrypted new token until the list shows the token.
    session_key: ClassVar[str]
    #: Scopes that a new token can have.
    offered_scopes: Sequence[str] = ORDINARY_SCOPES
    #: Descriptions of the scopes by name.
    scopes_by_name: ClassVar[Mapping[str, Scope]]
    #: Project or group of the tokens, or None for a user's own tokens.
    namespace: Namespace | None = None
    #: Highest role of a token that the user may revoke.
    role: Role = Role.OWNER

    @abstractmethod
    def build_url(self, page: str, **values: Any) -> str:
        """Return the URL of a page: index, new, rotate or revoke."""

    @abstractmethod
    def build_filter(self, *, is_active: bool) -> TokenFilter:
        """Return the filter for the tokens in the list."""

    @abstractmethod
    def build_form(self) -> TokenForm:
        """Return the form for a new token."""

    @abstractmethod
    def create_token(self, form: TokenForm) -> CreatedToken:
        """Create a token from the submitted form."""

    @abstractmethod
    def rotate_token(self, token_id: int) -> CreatedToken:
        """Replace a token with a new token."""

    @abstractmethod
    def revoke_token(self, token_id: int) -> AccessToken:
        """Revoke a token."""

    def find_roles(self, items: Sequence[TokenView]) -> dict[int, Role | None]:
        """Return the roles of tokens by token ID.

        A user's own tokens have no role.
        """
        del items
        return {}

    def index(self) -> ResponseReturnValue:
        """List the tokens, and show the value of a newly created token once."""
        given = get_list_query("state", *CURSOR_PARAMETERS)
        is_active = get_choice(given, "state", ("active", "inactive"), "active") == "active"
        wanted = self.build_filter(is_active=is_active)
        found = token_lists.fetch_token_page(
            wanted, get_requested_keyset_range(), session=db.session(), now=get_current_time()
        )
        roles = self.find_roles(found.items)
        ids = [each.id for each in found.items if (roles.get(each.id) or self.role) <= self.role]
        name, sealed = session.pop(self.session_key, ("", None))
        page = self._render_page(
            "index",
            page=build_page_links(found),
            roles=roles,
            rotate_urls={each: self.build_url("rotate", token_id=each) for each in ids},
            revoke_urls={each: self.build_url("revoke", token_id=each) for each in ids},
            scope_words=self.scopes_by_name,
            is_active=is_active,
            counts={state: self._count_tokens(is_active=state) for state in (True, False)},
            new_name=name,
            new_token=get_services().keyring.decrypt(sealed) if sealed else None,
        )
        return page, 200, {"Cache-Control": "no-store"}

    def new(self) -> ResponseReturnValue:
        """Create a token and show it."""
        form = self.build_form()
        made = form.run_if_valid(lambda: self.create_token(form))
        return self._render_form(form) if made is None else self._store_new_token_and_redirect(made)

    def rotate(self, token_id: int) -> ResponseReturnValue:
        """Replace a token with a new token of the same lifetime, and show it."""
        try:
            made = self.rotate_token(token_id)
        except InvalidError as error:
            flash(str(error), "error")
            return redirect(self.build_url("index"))
        return self._store_new_token_and_redirect(made)

    def revoke(self, token_id: int) -> ResponseReturnValue:
        """Revoke a token."""
        flash(f"Token {self.revoke_token(token_id).name} revoked.")
        return redirect(self.build_url("index"))

    def _count_tokens(self, *, is_active: bool) -> int:
        return token_lists.count_tokens(
            self.build_filter(is_active=is_active), session=db.session(), now=get_current_time()
        )

    def _render_form(self, form: TokenForm) -> ResponseReturnValue:
        moment, lifetimes = get_current_time(), get_token_lifetimes()
        page = self._render_page(
            "new",
            form=form,
            scope_choices=[self.scopes_by_name[name] for name in self.offered_scopes],
            first_day=moment.date() + timedelta(days=1),
            last_day=lifetimes.get_latest_expiry_day(moment),
            usual_day=lifetimes.get_default_expiry_day(moment),
        )
        return page, 422 if form.errors else 200

    def _render_page(self, name: str, **context: Any) -> str:
        return render_template(
            f"access_tokens/{name}.html",
            namespace=self.namespace,
            index_url=self.build_url("index"),
            new_url=self.build_url("new"),
            **context,
        )

    def _store_new_token_and_redirect(self, made: CreatedToken) -> ResponseReturnValue:
        session[self.session_key] = (made.name, get_services().keyring.encrypt(made.token))
        return redirect(self.build_url("index"))
