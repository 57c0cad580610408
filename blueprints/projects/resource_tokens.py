"""Access tokens of projects and groups: each acts as a bot that is a member there."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from flask import flash, redirect, render_template, session, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.roles import Role
from domain.audit.events import EventKind
from domain.database.list_queries import one_of
from domain.errors import InvalidError
from domain.oauth.personal_tokens import lists
from domain.oauth.personal_tokens import resource_tokens as domain
from domain.oauth.personal_tokens import tokens as personal_tokens
from domain.oauth.personal_tokens.lists import TokenFilter, TokenView
from domain.oauth.personal_tokens.resource_tokens import SCOPE_WORDS, TokenRequest
from domain.oauth.personal_tokens.tokens import PERSONAL_SCOPES, NewToken, TokenDetails
from domain.projects.access import get_group_for
from domain.projects.views import Namespace, ProjectView
from forms.access_token import ResourceTokenForm
from web.extensions import db
from web.http.access import project_member, signed_in, viewer
from web.http.audit_events import record_event
from web.http.endpoints import PageBlueprint
from web.pages.links import page_links
from web.pages.list_query import CURSORS, asked_slice, list_query
from web.services import now, services, settings

resource_tokens = PageBlueprint("resource_tokens", __name__)
_OF_PROJECT = "/<names:project_path>/-/settings/access_tokens"
_OF_GROUP = "/groups/<names:group_path>/-/access_tokens"
#: A token crosses one redirect in the session, encrypted, and is then gone.
_SHOWN_ONCE = "resource_access_token"


@dataclass(frozen=True, kw_only=True)
class TokenScope:
    """A project or a group whose tokens the visitor may manage, and their role there."""

    namespace: Namespace
    role: Role

    def url(self, page: str, **values: Any) -> str:
        """Return the address of one of the pages below."""
        kind = "project" if self.namespace.project_id is not None else "group"
        where: dict[str, Any] = {f"{kind}_path": self.namespace.path, **values}
        return url_for(f"resource_tokens.{kind}_{page}", **where)


@resource_tokens.get(_OF_PROJECT)
@project_member(at_least=Role.MAINTAINER)
def project_index(project: ProjectView) -> ResponseReturnValue:
    """List the tokens of a project."""
    return _index(_of_project(project))


@resource_tokens.route(f"{_OF_PROJECT}/new", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def project_new(project: ProjectView) -> ResponseReturnValue:
    """Make a token of a project, and show it."""
    return _new(_of_project(project))


@resource_tokens.post(f"{_OF_PROJECT}/<int:token_id>/rotate")
@project_member(at_least=Role.MAINTAINER)
def project_rotate(project: ProjectView, token_id: int) -> ResponseReturnValue:
    """Replace a token of a project by a new one."""
    return _rotate(_of_project(project), token_id)


@resource_tokens.post(f"{_OF_PROJECT}/<int:token_id>/revoke")
@project_member(at_least=Role.MAINTAINER)
def project_revoke(project: ProjectView, token_id: int) -> ResponseReturnValue:
    """Make a token of a project worthless."""
    return _revoke(_of_project(project), token_id)


@resource_tokens.get(_OF_GROUP)
@signed_in
def group_index(group_path: str) -> ResponseReturnValue:
    """List the tokens of a group; its owners alone may."""
    return _index(_of_group(group_path))


@resource_tokens.route(f"{_OF_GROUP}/new", methods=["GET", "POST"])
@signed_in
def group_new(group_path: str) -> ResponseReturnValue:
    """Make a token of a group, and show it."""
    return _new(_of_group(group_path))


@resource_tokens.post(f"{_OF_GROUP}/<int:token_id>/rotate")
@signed_in
def group_rotate(group_path: str, token_id: int) -> ResponseReturnValue:
    """Replace a token of a group by a new one."""
    return _rotate(_of_group(group_path), token_id)


@resource_tokens.post(f"{_OF_GROUP}/<int:token_id>/revoke")
@signed_in
def group_revoke(group_path: str, token_id: int) -> ResponseReturnValue:
    """Make a token of a group worthless."""
    return _revoke(_of_group(group_path), token_id)


def _of_project(project: ProjectView) -> TokenScope:
    return TokenScope(namespace=project.namespace, role=project.role or Role.GUEST)


def _of_group(path: str) -> TokenScope:
    group = get_group_for(path, viewer(), at_least=Role.OWNER, session=db.session())
    return TokenScope(namespace=group.namespace, role=group.role or Role.GUEST)


def _index(scope: TokenScope) -> ResponseReturnValue:
    """Show a part of the tokens; one that was just made is shown this once."""
    given = list_query("state", *CURSORS)
    is_active = one_of(given, "state", ("active", "inactive"), "active") == "active"
    wanted = TokenFilter(owner_id=None, namespace=scope.namespace, is_active=is_active)
    found = lists.page_of_tokens(wanted, asked_slice(), session=db.session(), now=now())
    name, sealed = session.pop(_SHOWN_ONCE, ("", None))
    page = render_template(
        "resource_tokens/index.html",
        **_frame(scope),
        **_rows(scope, found.items),
        page=page_links(found),
        is_active=is_active,
        counts={state: _count(scope, is_active=state) for state in (True, False)},
        new_name=name,
        new_token=services().keyring.decrypt(sealed) if sealed else None,
    )
    return page, 200, {"Cache-Control": "no-store"}


def _count(scope: TokenScope, *, is_active: bool) -> int:
    wanted = TokenFilter(owner_id=None, namespace=scope.namespace, is_active=is_active)
    return lists.count_tokens(wanted, session=db.session(), now=now())


def _frame(scope: TokenScope) -> dict[str, Any]:
    return {
        "namespace": scope.namespace,
        "index_url": scope.url("index"),
        "new_url": scope.url("new"),
    }


def _rows(scope: TokenScope, tokens: Sequence[TokenView]) -> dict[str, Any]:
    """Return what the table shows of each token beside itself."""
    seen = domain.with_roles(tuple(tokens), scope.namespace, session=db.session())
    may_end = [each.token.id for each in seen if each.role is None or each.role <= scope.role]
    return {
        "scope_words": SCOPE_WORDS,
        "roles": {each.token.id: each.role for each in seen},
        "revoke_urls": {each: scope.url("revoke", token_id=each) for each in may_end},
        "rotate_urls": {each: scope.url("rotate", token_id=each) for each in may_end},
    }


def _new(scope: TokenScope) -> ResponseReturnValue:
    form = ResourceTokenForm(granted_by=scope.role)
    if not form.validate_on_submit():
        return _form_page(scope, form)
    keyring = services().keyring
    try:
        made = domain.create_resource_token(
            scope.namespace,
            _token_request(scope, form),
            session=db.session(),
            keyring=keyring,
            now=now(),
        )
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _form_page(scope, form)
    record_event(made.token.event(EventKind.TOKEN_ISSUED))
    return _show_once(scope, made)


def _token_request(scope: TokenScope, form: ResourceTokenForm) -> TokenRequest:
    details = TokenDetails(
        name=form.name.data or "",
        description=form.description.data or "",
        scopes=" ".join(form.scopes.data or ()),
        expires_at=personal_tokens.expiry_on(form.expires_at.data, longest=_longest(), now=now()),
    )
    return TokenRequest(details=details, role=form.chosen_role, granted_by=scope.role)


def _longest() -> timedelta:
    return timedelta(days=settings().personal_access_token_lifetime_days)


def _form_page(scope: TokenScope, form: ResourceTokenForm) -> ResponseReturnValue:
    today = now().date()
    page = render_template(
        "resource_tokens/new.html",
        **_frame(scope),
        form=form,
        scope_choices=[SCOPE_WORDS[name] for name in PERSONAL_SCOPES],
        first_day=today + timedelta(days=1),
        last_day=today + _longest(),
    )
    return page, 422 if form.errors else 200


def _rotate(scope: TokenScope, token_id: int) -> ResponseReturnValue:
    database, keyring, moment = db.session(), services().keyring, now()
    old = domain.get_resource_token(scope.namespace, token_id, session=database, now=moment)
    domain.check_may_end(old, scope.role)
    until = personal_tokens.renewed_expiry(old.token, longest=_longest(), now=moment)
    try:
        made = domain.rotate_resource_token(
            scope.namespace, token_id, until, session=database, keyring=keyring, now=moment
        )
    except InvalidError as error:
        flash(str(error), "error")
        return redirect(scope.url("index"))
    record_event(made.token.event(EventKind.TOKEN_ROTATED))
    return _show_once(scope, made)


def _revoke(scope: TokenScope, token_id: int) -> ResponseReturnValue:
    database, moment = db.session(), now()
    old = domain.get_resource_token(scope.namespace, token_id, session=database, now=moment)
    domain.check_may_end(old, scope.role)
    token = domain.revoke_resource_token(scope.namespace, token_id, session=database, now=moment)
    record_event(token.event(EventKind.TOKEN_REVOKED))
    flash(f"The token {token.name} is revoked.")
    return redirect(scope.url("index"))


def _show_once(scope: TokenScope, made: NewToken) -> ResponseReturnValue:
    session[_SHOWN_ONCE] = (made.token.name, services().keyring.encrypt(made.clear))
    return redirect(scope.url("index"))
