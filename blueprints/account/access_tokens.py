"""The user settings page 'access tokens': personal access tokens."""

from datetime import timedelta

from flask import flash, redirect, render_template, session, url_for
from flask.typing import ResponseReturnValue

from domain.audit.events import EventKind
from domain.database.list_queries import one_of
from domain.errors import InvalidError
from domain.oauth.personal_tokens import lists
from domain.oauth.personal_tokens import tokens as domain
from domain.oauth.personal_tokens.lists import TokenFilter
from domain.oauth.personal_tokens.tokens import PERSONAL_SCOPES, NewToken, TokenDetails
from domain.oauth.scopes import BY_NAME, views
from forms.access_token import AccessTokenForm
from web.extensions import db
from web.http.access import get_current_user, signed_in
from web.http.audit_events import record_event
from web.http.endpoints import PageBlueprint
from web.pages.links import page_links
from web.pages.list_query import CURSORS, asked_slice, list_query
from web.services import now, services, settings

access_tokens = PageBlueprint(
    "access_tokens", __name__, url_prefix="/-/user_settings/access_tokens"
)
#: A new token is encrypted in the session for one redirect.
_SHOWN_ONCE = "personal_access_token"


@access_tokens.get("")
@signed_in
def index() -> ResponseReturnValue:
    """List the user's tokens; a new one is shown once."""
    given = list_query("state", *CURSORS)
    is_active = one_of(given, "state", ("active", "inactive"), "active") == "active"
    found = lists.page_of_tokens(_mine(is_active), asked_slice(), session=db.session(), now=now())
    name, sealed = session.pop(_SHOWN_ONCE, ("", None))
    page = render_template(
        "access_tokens/index.html",
        page=page_links(found),
        scope_words={scope.name: scope for scope in views(BY_NAME)},
        is_active=is_active,
        counts={state: _count(state) for state in (True, False)},
        new_name=name,
        new_token=services().keyring.decrypt(sealed) if sealed else None,
    )
    return page, 200, {"Cache-Control": "no-store"}


@access_tokens.route("/new", methods=["GET", "POST"])
@signed_in
def new() -> ResponseReturnValue:
    """Create a token and show it."""
    form = AccessTokenForm()
    if not form.validate_on_submit():
        return _form_page(form)
    try:
        made = _create(form)
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _form_page(form)
    record_event(made.token.event(EventKind.TOKEN_ISSUED))
    return _show_once(made)


@access_tokens.post("/<int:token_id>/rotate")
@signed_in
def rotate(token_id: int) -> ResponseReturnValue:
    """Replace a token by a new one with the same lifetime, and show it."""
    mine, database = get_current_user().id, db.session()
    old = lists.get_token(token_id, owner_id=mine, session=database, now=now())
    until = domain.renewed_expiry(old, longest=_longest(), now=now())
    keyring = services().keyring
    try:
        made = domain.rotate_token(
            token_id, until, owner_id=mine, session=database, keyring=keyring, now=now()
        )
    except InvalidError as error:
        flash(str(error), "error")
        return redirect(url_for("access_tokens.index"))
    record_event(made.token.event(EventKind.TOKEN_ROTATED))
    return _show_once(made)


@access_tokens.post("/<int:token_id>/revoke")
@signed_in
def revoke(token_id: int) -> ResponseReturnValue:
    """Revoke a token."""
    token = domain.revoke_token(
        token_id, owner_id=get_current_user().id, session=db.session(), now=now()
    )
    record_event(token.event(EventKind.TOKEN_REVOKED))
    flash(f"The token {token.name} is revoked.")
    return redirect(url_for("access_tokens.index"))


def _mine(is_active: bool) -> TokenFilter:  # noqa: FBT001 - which of the two tabs
    return TokenFilter(owner_id=get_current_user().id, is_active=is_active)


def _count(is_active: bool) -> int:  # noqa: FBT001 - which of the two tabs
    return lists.count_tokens(_mine(is_active), session=db.session(), now=now())


def _longest() -> timedelta:
    return timedelta(days=settings().personal_access_token_lifetime_days)


def _create(form: AccessTokenForm) -> NewToken:
    details = TokenDetails(
        name=form.name.data or "",
        description=form.description.data or "",
        scopes=" ".join(form.scopes.data or ()),
        expires_at=domain.expiry_on(form.expires_at.data, longest=_longest(), now=now()),
    )
    return domain.create_token(
        get_current_user().id, details, session=db.session(), keyring=services().keyring, now=now()
    )


def _form_page(form: AccessTokenForm) -> ResponseReturnValue:
    today = now().date()
    page = render_template(
        "access_tokens/new.html",
        form=form,
        scope_choices=views(PERSONAL_SCOPES),
        first_day=today + timedelta(days=1),
        last_day=today + _longest(),
    )
    return page, 422 if form.errors else 200


def _show_once(made: NewToken) -> ResponseReturnValue:
    session[_SHOWN_ONCE] = (made.token.name, services().keyring.encrypt(made.clear))
    return redirect(url_for("access_tokens.index"))
