"""Access token pages for projects and groups."""

from collections.abc import Sequence
from typing import Any

from flask import url_for
from flask.typing import ResponseReturnValue

from blueprints.token_pages import TokenPages
from domain.access.roles import Role
from domain.oauth.personal_tokens import actions
from domain.oauth.personal_tokens import resource_tokens as domain
from domain.oauth.personal_tokens.resource_tokens import RESOURCE_SCOPES_BY_NAME
from domain.oauth.personal_tokens.token_lists import TokenFilter, TokenView
from domain.oauth.personal_tokens.types import (
    AccessToken,
    NewResourceAccessToken,
    ResourceTokenBody,
)
from domain.projects.views import Namespace, ProjectOrGroup
from forms.access_token import ResourceTokenForm
from web.access.decorators import permission_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work

resource_tokens = PageBlueprint("resource_tokens", __name__)
_PROJECT_PATH = "/<names:project_path>/-/settings/access_tokens"
_GROUP_PATH = "/groups/<names:group_path>/-/access_tokens"


class _ResourceTokenPages(TokenPages[ResourceTokenForm]):
    """Pages for the tokens of a project or group that the user may manage."""

    session_key = "resource_access_token"
    scopes_by_name = RESOURCE_SCOPES_BY_NAME

    def __init__(self, holder: ProjectOrGroup) -> None:
        """Store the project or group, and the user's role in it."""
        self.holder = holder
        self.namespace: Namespace = holder.namespace
        self.role = holder.role or Role.GUEST

    def build_url(self, page: str, **values: Any) -> str:
        resource_type = self.namespace.resource_type
        where: dict[str, Any] = {f"{resource_type}_path": self.namespace.path, **values}
        return url_for(f"resource_tokens.{resource_type}_{page}", **where)

    def build_filter(self, *, is_active: bool) -> TokenFilter:
        return TokenFilter(owner_id=None, namespace=self.namespace, is_active=is_active)

    def build_form(self) -> ResourceTokenForm:
        return ResourceTokenForm(granted_by=self.role)

    def create_token(self, form: ResourceTokenForm) -> NewResourceAccessToken:
        new = form.build_entered_body(ResourceTokenBody, access_level=form.role.data)
        return actions.create_resource_token(get_unit_of_work(), self.holder, new)

    def rotate_token(self, token_id: int) -> NewResourceAccessToken:
        return actions.renew_resource_token(get_unit_of_work(), self.holder, token_id)

    def revoke_token(self, token_id: int) -> AccessToken:
        return actions.revoke_resource_token(get_unit_of_work(), self.holder, token_id)

    def find_roles(self, items: Sequence[TokenView]) -> dict[int, Role | None]:
        seen = domain.add_bot_roles(items, self.namespace, session=db.session())
        return {each.token.id: each.role for each in seen}


@resource_tokens.get(_PROJECT_PATH, endpoint="project_index")
@resource_tokens.get(_GROUP_PATH, endpoint="group_index")
@permission_required("resource_tokens.index")
def index(**holder: ProjectOrGroup) -> ResponseReturnValue:
    """List the tokens of a project or a group."""
    return _build_pages(**holder).index()


@resource_tokens.route(f"{_PROJECT_PATH}/new", methods=["GET", "POST"], endpoint="project_new")
@resource_tokens.route(f"{_GROUP_PATH}/new", methods=["GET", "POST"], endpoint="group_new")
@permission_required("resource_tokens.create")
def new(**holder: ProjectOrGroup) -> ResponseReturnValue:
    """Create a token and show it."""
    return _build_pages(**holder).new()


@resource_tokens.post(f"{_PROJECT_PATH}/<int:token_id>/rotate", endpoint="project_rotate")
@resource_tokens.post(f"{_GROUP_PATH}/<int:token_id>/rotate", endpoint="group_rotate")
@permission_required("resource_tokens.renew")
def rotate(token_id: int, **holder: ProjectOrGroup) -> ResponseReturnValue:
    """Replace a token with a new token."""
    return _build_pages(**holder).rotate(token_id)


@resource_tokens.post(f"{_PROJECT_PATH}/<int:token_id>/revoke", endpoint="project_revoke")
@resource_tokens.post(f"{_GROUP_PATH}/<int:token_id>/revoke", endpoint="group_revoke")
@permission_required("resource_tokens.revoke")
def revoke(token_id: int, **holder: ProjectOrGroup) -> ResponseReturnValue:
    """Revoke a token."""
    return _build_pages(**holder).revoke(token_id)


def _build_pages(**holder: ProjectOrGroup) -> _ResourceTokenPages:
    return _ResourceTokenPages(*holder.values())
