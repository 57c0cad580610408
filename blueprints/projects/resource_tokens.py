"""Access tokens of projects and groups: each acts as a bot that is a member there."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from flask import Blueprint, flash, redirect, render_template, session, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.roles import Role
from domain.audit.events import EventKind
from domain.database.list_queries import one_of
from domain.errors import InvalidError
from domain.oauth.personal_tokens import lists
from domain.oauth.personal_tokens import resource_tokens as domain
from domain.oauth.personal_tokens import tokens as personal_tokens
from domain.oauth.personal_tokens.lists import TokenFilter, TokenView
from domain.oauth.personal_tokens.resource_tokens import SCOPE_WORDS, Wish
from domain.oauth.personal_tokens.tokens import PERSONAL_SCOPES, NewToken, TokenDetails
from domain.projects.access import get_group_for
from domain.projects.members import Place
from domain.projects.views import ProjectView
from forms.access_token import PlaceTokenForm
from web.extensions import db
from web.http.access import project_member, signed_in, viewer
from web.http.audit import note
from web.pages.links import page_links
from web.pages.list_query import PLACES, asked_slice, list_query
from web.services import now, services, settings

place_tokens = Blueprint("place_tokens", __name__)
_OF_PROJECT = "/<names:project_path>/-/settings/access_tokens"
_OF_GROUP = "/groups/<names:group_path>/-/access_tokens"
#: A token crosses one redirect in the session, encrypted, and is then gone.
_SHOWN_ONCE = "place_access_token"


@dataclass(frozen=True, kw_only=True)
class Held:
    """A project or a group whose tokens the visitor may manage, and their role there."""

    place: Place
    role: Role

    def url(self, page: str, **values: Any) -> str:
        """Return the address of one of the pages below."""
        kind = "project" if self.place.project_id is not None else "group"
        where: dict[str, Any] = {f"{kind}_path": self.place.path, **values}
        return url_for(f"place_tokens.{kind}_{page}", **where)


@place_tokens.get(_OF_PROJECT)
@project_member(at_least=Role.MAINTAINER)
def project_index(project: ProjectView) -> ResponseReturnValue:
    """List the tokens of a project."""
    return _index(_of_project(project))


@place_tokens.route(f"{_OF_PROJECT}/new", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def project_new(project: ProjectView) -> ResponseReturnValue:
    """Make a token of a project, and show it."""
    return _new(_of_project(project))


@place_tokens.post(f"{_OF_PROJECT}/<int:token_id>/rotate")
@project_member(at_least=Role.MAINTAINER)
def project_rotate(project: ProjectView, token_id: int) -> ResponseReturnValue:
    """Put a new token in the place of one of a project."""
    return _rotate(_of_project(project), token_id)


@place_tokens.post(f"{_OF_PROJECT}/<int:token_id>/revoke")
@project_member(at_least=Role.MAINTAINER)
def project_revoke(project: ProjectView, token_id: int) -> ResponseReturnValue:
    """Make a token of a project worthless."""
    return _revoke(_of_project(project), token_id)


@place_tokens.get(_OF_GROUP)
@signed_in
def group_index(group_path: str) -> ResponseReturnValue:
    """List the tokens of a group; its owners alone may."""
    return _index(_of_group(group_path))


@place_tokens.route(f"{_OF_GROUP}/new", methods=["GET", "POST"])
@signed_in
def group_new(group_path: str) -> ResponseReturnValue:
    """Make a token of a group, and show it."""
    return _new(_of_group(group_path))


@place_tokens.post(f"{_OF_GROUP}/<int:token_id>/rotate")
@signed_in
def group_rotate(group_path: str, token_id: int) -> ResponseReturnValue:
    """Put a new token in the place of one of a group."""
    return _rotate(_of_group(group_path), token_id)


@place_tokens.post(f"{_OF_GROUP}/<int:token_id>/revoke")
@signed_in
def group_revoke(group_path: str, token_id: int) -> ResponseReturnValue:
    """Make a token of a group worthless."""
    return _revoke(_of_group(group_path), token_id)


def _of_project(project: ProjectView) -> Held:
    place = Place(project_id=project.id, path=project.path)
    return Held(place=place, role=project.role or Role.GUEST)


def _of_group(path: str) -> Held:
    group = get_group_for(path, viewer(), at_least=Role.OWNER, session=db.session())
    return Held(place=Place(group_id=group.id, path=group.path), role=group.role or Role.GUEST)


def _index(held: Held) -> ResponseReturnValue:
    """Show a part of the tokens; one that was just made is shown this once."""
    given = list_query("state", *PLACES)
    is_active = one_of(given, "state", ("active", "inactive"), "active") == "active"
    wanted = TokenFilter(owner_id=None, place=held.place, is_active=is_active)
    found = lists.page_of_tokens(wanted, asked_slice(), session=db.session(), now=now())
    name, sealed = session.pop(_SHOWN_ONCE, ("", None))
    page = render_template(
        "place_tokens/index.html",
        **_frame(held),
        **_rows(held, found.items),
        page=page_links(found),
        is_active=is_active,
        counts={state: _count(held, is_active=state) for state in (True, False)},
        new_name=name,
        new_token=services().keyring.decrypt(sealed) if sealed else None,
    )
    return page, 200, {"Cache-Control": "no-store"}


def _count(held: Held, *, is_active: bool) -> int:
    wanted = TokenFilter(owner_id=None, place=held.place, is_active=is_active)
    return lists.count_tokens(wanted, session=db.session(), now=now())


def _frame(held: Held) -> dict[str, Any]:
    return {"place": held.place, "index_url": held.url("index"), "new_url": held.url("new")}


def _rows(held: Held, tokens: Sequence[TokenView]) -> dict[str, Any]:
    """Return what the table shows of each token beside itself."""
    seen = domain.with_roles(tuple(tokens), held.place, session=db.session())
    may_end = [each.token.id for each in seen if each.role is None or each.role <= held.role]
    return {
        "scope_words": SCOPE_WORDS,
        "roles": {each.token.id: each.role for each in seen},
        "revoke_urls": {each: held.url("revoke", token_id=each) for each in may_end},
        "rotate_urls": {each: held.url("rotate", token_id=each) for each in may_end},
    }


def _new(held: Held) -> ResponseReturnValue:
    form = PlaceTokenForm(giver=held.role)
    if not form.validate_on_submit():
        return _form_page(held, form)
    keyring = services().keyring
    try:
        made = domain.create_place_token(
            held.place, _wish(held, form), session=db.session(), keyring=keyring, now=now()
        )
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _form_page(held, form)
    note(made.token.event(EventKind.TOKEN_ISSUED))
    return _show_once(held, made)


def _wish(held: Held, form: PlaceTokenForm) -> Wish:
    details = TokenDetails(
        name=form.name.data or "",
        description=form.description.data or "",
        scopes=" ".join(form.scopes.data or ()),
        expires_at=personal_tokens.expiry_on(form.expires_at.data, longest=_longest(), now=now()),
    )
    return Wish(details=details, role=form.chosen_role, giver=held.role)


def _longest() -> timedelta:
    return timedelta(days=settings().personal_access_token_lifetime_days)


def _form_page(held: Held, form: PlaceTokenForm) -> ResponseReturnValue:
    today = now().date()
    page = render_template(
        "place_tokens/new.html",
        **_frame(held),
        form=form,
        scope_choices=[SCOPE_WORDS[name] for name in PERSONAL_SCOPES],
        first_day=today + timedelta(days=1),
        last_day=today + _longest(),
    )
    return page, 422 if form.errors else 200


def _rotate(held: Held, token_id: int) -> ResponseReturnValue:
    database, keyring, moment = db.session(), services().keyring, now()
    old = domain.get_place_token(held.place, token_id, session=database, now=moment)
    domain.check_may_end(old, held.role)
    until = personal_tokens.renewed_expiry(old.token, longest=_longest(), now=moment)
    try:
        made = domain.rotate_place_token(
            held.place, token_id, until, session=database, keyring=keyring, now=moment
        )
    except InvalidError as error:
        flash(str(error), "error")
        return redirect(held.url("index"))
    note(made.token.event(EventKind.TOKEN_ROTATED))
    return _show_once(held, made)


def _revoke(held: Held, token_id: int) -> ResponseReturnValue:
    database, moment = db.session(), now()
    old = domain.get_place_token(held.place, token_id, session=database, now=moment)
    domain.check_may_end(old, held.role)
    token = domain.revoke_place_token(held.place, token_id, session=database, now=moment)
    note(token.event(EventKind.TOKEN_REVOKED))
    flash(f"The token {token.name} is revoked.")
    return redirect(held.url("index"))


def _show_once(held: Held, made: NewToken) -> ResponseReturnValue:
    session[_SHOWN_ONCE] = (made.token.name, services().keyring.encrypt(made.clear))
    return redirect(held.url("index"))
