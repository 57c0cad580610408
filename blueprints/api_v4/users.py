"""/api/v4/user (the current user) and /api/v4/users."""

from dataclasses import replace
from http import HTTPStatus

from flask import Response

from domain.accounts.identity_providers.identities import disconnect_user
from domain.accounts.lifecycle import actions, own_account, sign_up
from domain.accounts.types import (
    Account,
    CurrentUser,
    NameBody,
    SshKey,
    SshKeyQuery,
    User,
    UserQuery,
)
from domain.accounts.users import find_user
from domain.core.database.pagination import parse_id
from domain.core.errors import QueryError
from domain.core.types.base import Done
from domain.core.types.pagination import ListPage
from domain.oauth.token_authentication.bearer import Bearer
from domain.projects.types import Project, ProjectQuery, find_projects
from domain.releases.schedule import CHANGES_BY_ID
from web.access.api_limits import RateLimitGroup
from web.api.operations import ResourceBlueprint, declare_fast_operation, declare_operation
from web.extensions import db
from web.http.json_responses import build_json_response
from web.http.unit_of_work import get_unit_of_work
from web.releases.requested_release import get_requested_release
from web.services import get_settings

users = ResourceBlueprint("users", __name__)
#: API change that removes numbered pages from the list of users.
_OFFSET_PAGINATION_CHANGE = CHANGES_BY_ID["users-offset-pagination"]


@users.get("/user")
@declare_fast_operation("users.current", returns=CurrentUser)
def current(bearer: Bearer) -> dict[str, object]:
    """Show the current user."""
    return bearer.profile.convert_to_json_value(get_settings().base_url)


@users.put("/user")
@declare_operation("users.rename_current", body=NameBody, returns=CurrentUser)
def rename_current(bearer: Bearer, body: NameBody) -> Response:
    """Change the name of the current user."""
    own_account.rename_own_account(get_unit_of_work(), body)
    return build_json_response(
        replace(bearer.profile, name=body.name).convert_to_json_value(get_settings().base_url)
    )


@users.get("/user/keys")
@declare_operation("users.ssh_keys", query=SshKeyQuery, returns=SshKey)
def ssh_keys(query: SshKeyQuery) -> ListPage[SshKey]:
    """List the SSH keys of the current user.

    The list is always empty, because Git repositories are available only over HTTP.
    """
    del query
    return ListPage(items=[], total=0)


@users.get("/users")
@declare_operation(
    "users.index", query=UserQuery, returns=Account | User, limit=RateLimitGroup.USERS
)
def index(query: UserQuery) -> ListPage[Account] | ListPage[User]:
    """List users.

    Administrators see all accounts. Other callers see only active accounts.
    """
    if _OFFSET_PAGINATION_CHANGE.applies_in(get_requested_release()):
        if query.order_by != "id":
            message = "`order_by` must be id, because this list no longer has numbered pages."
            raise QueryError(message, field="order_by")
        query = query.model_copy(update={"pagination": "keyset"})
    found = actions.list_users(get_unit_of_work(), query)
    if query.order_by == "id" and found.has_more_than(query.page * query.page_size):
        # A later release removes numbered pages, so links already use keyset pagination.
        return replace(found, next_cursor=str(found.items[-1].id))
    return found


@users.get("/users/<string:user>/projects")
@declare_operation(
    "users.projects", query=ProjectQuery, returns=Project, limit=RateLimitGroup.PROJECTS
)
def projects(query: ProjectQuery, user: str) -> ListPage[Project]:
    """List the projects that a user owns.

    The path contains the ID or the username of the user. Administrators see all projects of the
    user. Other callers see the projects that they are members of.
    """
    owner_id = _find_user_id(user)
    actions.show_user(get_unit_of_work(), owner_id)
    return find_projects(get_unit_of_work(), query, owner_id=owner_id)


def _find_user_id(user: str) -> int:
    """Return the ID of the user with the given ID or username, or 0 if no such user exists."""
    number = parse_id(user)
    if number is not None or "@" in user:  # A lookup by email address would reveal its owner.
        return number or 0
    found = find_user(user, session=db.session())
    return found.id if found else 0


for _act in (
    actions.lock_user,
    actions.unlock_user,
    actions.deactivate_user,
    actions.activate_user,
):
    users.bind_action("POST", f"/users/<int:user_id>/{_act.verb}", _act, returns=Done)

users.bind_action("GET", "/users/<int:user_id>", actions.show_user, limit=RateLimitGroup.USER)
users.bind_action("POST", "/users", actions.create_user)
users.bind_action("PUT", "/users/<int:user_id>", actions.change_user)
users.bind_action("POST", "/users/<int:user_id>/approve", sign_up.approve_user)
users.bind_action("POST", "/users/<int:user_id>/reject", sign_up.reject_user, status=HTTPStatus.OK)
users.bind_action(
    "GET",
    "/users/<int:user_id>/export",
    actions.export_user,
    limit=RateLimitGroup.USER,
    writes=True,
)
users.bind_action("DELETE", "/users/<int:user_id>", actions.delete_user)
users.bind_action("DELETE", "/users/<int:user_id>/identities/<provider>", disconnect_user)
