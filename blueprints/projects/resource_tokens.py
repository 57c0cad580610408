"""Pages of the access tokens of projects and groups."""

from collections.abc import Sequence
from typing import Any

from flask import url_for
from flask.typing import ResponseReturnValue

from blueprints.token_pages import TokenPages
from domain.access.roles import Role
from domain.oauth.personal_tokens import resource_tokens as domain
from domain.oauth.personal_tokens.lists import TokenFilter, TokenView
from domain.oauth.personal_tokens.resource_tokens import SCOPE_WORDS, TokenRequest
from domain.oauth.personal_tokens.tokens import NewToken, TokenDetails
from domain.projects.access import get_group_for
from domain.projects.views import GroupView, Namespace, ProjectView
from forms.access_token import ResourceTokenForm
from web.access.marks import project_member, signed_in, viewer
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.services import now, services

resource_tokens = PageBlueprint("resource_tokens", __name__)
_OF_PROJECT = "/<names:project_path>/-/settings/access_tokens"
_OF_GROUP = "/groups/<names:group_path>/-/access_tokens"


class _ResourceTokens(TokenPages[ResourceTokenForm]):
    """The pages of the tokens of a project or a group that the user may manage."""

    session_key = "resource_access_token"
    scope_words = SCOPE_WORDS

    def __init__(self, holder: ProjectView | GroupView) -> None:
        """Store the project or group, and the user's role there."""
        self.namespace: Namespace = holder.namespace
        self.role = holder.role or Role.GUEST

    def url(self, page: str, **values: Any) -> str:
        resource_type = self.namespace.resource_type
        where: dict[str, Any] = {f"{resource_type}_path": self.namespace.path, **values}
        return url_for(f"resource_tokens.{resource_type}_{page}", **where)

    def wanted(self, *, is_active: bool) -> TokenFilter:
        return TokenFilter(owner_id=None, namespace=self.namespace, is_active=is_active)

    def owner_of(self, token_id: int) -> int:
        found = domain.get_token_to_end(
            self.namespace, token_id, by=viewer(), session=db.session(), now=now()
        )
        return found.token.user_id

    def form(self) -> ResourceTokenForm:
        return ResourceTokenForm(granted_by=self.role)

    def create(self, form: ResourceTokenForm, details: TokenDetails) -> NewToken:
        role = form.chosen_role
        wanted = TokenRequest(details=details, role=role)
        keyring, database = services().keyring, db.session()
        return domain.create_resource_token(
            self.namespace, wanted, by=viewer(), session=database, keyring=keyring, now=now()
        )

    def roles_of(self, items: Sequence[TokenView]) -> dict[int, Role | None]:
        seen = domain.with_roles(tuple(items), self.namespace, session=db.session())
        return {each.token.id: each.role for each in seen}


@resource_tokens.get(_OF_PROJECT)
@project_member(at_least=Role.MAINTAINER)
def project_index(project: ProjectView) -> ResponseReturnValue:
    """List the tokens of a project."""
    return _of_project(project).index()


@resource_tokens.route(f"{_OF_PROJECT}/new", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def project_new(project: ProjectView) -> ResponseReturnValue:
    """Create a token of a project, and show it."""
    return _of_project(project).new()


@resource_tokens.post(f"{_OF_PROJECT}/<int:token_id>/rotate")
@project_member(at_least=Role.MAINTAINER)
def project_rotate(project: ProjectView, token_id: int) -> ResponseReturnValue:
    """Replace a token of a project by a new one."""
    return _of_project(project).rotate(token_id)


@resource_tokens.post(f"{_OF_PROJECT}/<int:token_id>/revoke")
@project_member(at_least=Role.MAINTAINER, in_archived=True)
def project_revoke(project: ProjectView, token_id: int) -> ResponseReturnValue:
    """Revoke a token of a project."""
    return _of_project(project).revoke(token_id)


@resource_tokens.get(_OF_GROUP)
@signed_in
def group_index(group_path: str) -> ResponseReturnValue:
    """List the tokens of a group; owners only."""
    return _of_group(group_path).index()


@resource_tokens.route(f"{_OF_GROUP}/new", methods=["GET", "POST"])
@signed_in
def group_new(group_path: str) -> ResponseReturnValue:
    """Create a token of a group, and show it."""
    return _of_group(group_path).new()


@resource_tokens.post(f"{_OF_GROUP}/<int:token_id>/rotate")
@signed_in
def group_rotate(group_path: str, token_id: int) -> ResponseReturnValue:
    """Replace a token of a group by a new one."""
    return _of_group(group_path).rotate(token_id)


@resource_tokens.post(f"{_OF_GROUP}/<int:token_id>/revoke")
@signed_in
def group_revoke(group_path: str, token_id: int) -> ResponseReturnValue:
    """Revoke a token of a group."""
    return _of_group(group_path).revoke(token_id)


def _of_project(project: ProjectView) -> _ResourceTokens:
    return _ResourceTokens(project)


def _of_group(path: str) -> _ResourceTokens:
    group = get_group_for(path, viewer(), at_least=Role.OWNER, session=db.session())
    return _ResourceTokens(group)
