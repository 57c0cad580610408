"""/api/v4/groups, /api/v4/projects and /api/v4/runners.

Later releases remove the runner operations.
"""

from http import HTTPStatus

from flask import Blueprint

from domain.core.database.pagination import MAX_ID
from domain.core.errors import NotFoundError
from domain.projects import group_actions, project_actions, shares
from web.access.api_limits import RateLimitGroup
from web.api.openapi.view_descriptions import declare_error_statuses
from web.api.operations import ResourceBlueprint, declare_operation

_ITEM_PATH = "/<string:reference>"
#: Decorator that describes error 404 for requests with a target group that does not exist.
_MAY_RETURN_404 = declare_error_statuses(HTTPStatus.NOT_FOUND)

groups = ResourceBlueprint("groups", __name__, url_prefix="/groups")
groups.bind_action("GET", "", group_actions.list_groups, limit=RateLimitGroup.GROUPS)
groups.bind_action("POST", "", group_actions.create_group, around=[_MAY_RETURN_404])
groups.bind_action("GET", _ITEM_PATH, group_actions.show_group, limit=RateLimitGroup.GROUP)
groups.bind_action("PUT", _ITEM_PATH, group_actions.change_group)
groups.bind_action("DELETE", _ITEM_PATH, group_actions.delete_group, status=HTTPStatus.ACCEPTED)
groups.bind_action(
    "POST", f"{_ITEM_PATH}/transfer", group_actions.transfer_group, around=[_MAY_RETURN_404]
)
groups.bind_action(
    "GET",
    f"{_ITEM_PATH}/transfer_locations",
    group_actions.list_transfer_locations,
    limit=RateLimitGroup.GROUPS,
)
groups.bind_action(
    "GET", f"{_ITEM_PATH}/subgroups", group_actions.list_subgroups, limit=RateLimitGroup.GROUPS
)
groups.bind_action(
    "GET",
    f"{_ITEM_PATH}/descendant_groups",
    group_actions.list_descendant_groups,
    limit=RateLimitGroup.GROUPS,
)
groups.bind_action(
    "GET",
    f"{_ITEM_PATH}/projects",
    group_actions.list_group_projects,
    limit=RateLimitGroup.GROUP_PROJECTS,
)

namespaces = ResourceBlueprint("namespaces", __name__, url_prefix="/namespaces")
namespaces.bind_action("GET", "", group_actions.list_namespaces, limit=RateLimitGroup.GROUPS)
namespaces.bind_action("GET", _ITEM_PATH, group_actions.show_namespace, limit=RateLimitGroup.GROUP)

projects = ResourceBlueprint("projects", __name__, url_prefix="/projects")
projects.bind_action("GET", "", project_actions.list_projects, limit=RateLimitGroup.PROJECTS)
projects.bind_action("POST", "", project_actions.create_project, around=[_MAY_RETURN_404])
projects.bind_action("GET", _ITEM_PATH, project_actions.show_project, limit=RateLimitGroup.PROJECT)
projects.bind_action("PUT", _ITEM_PATH, project_actions.change_project)
projects.bind_action(
    "DELETE", _ITEM_PATH, project_actions.delete_project, status=HTTPStatus.ACCEPTED
)
projects.bind_action(
    "PUT", f"{_ITEM_PATH}/transfer", project_actions.transfer_project, around=[_MAY_RETURN_404]
)
projects.bind_action(
    "GET",
    f"{_ITEM_PATH}/transfer_locations",
    project_actions.list_transfer_locations,
    limit=RateLimitGroup.GROUPS,
)
projects.bind_action("POST", f"{_ITEM_PATH}/archive", project_actions.archive_project)
projects.bind_action("POST", f"{_ITEM_PATH}/unarchive", project_actions.unarchive_project)
projects.bind_action("POST", f"{_ITEM_PATH}/share", shares.share_project, around=[_MAY_RETURN_404])
projects.bind_action(
    "DELETE", f"{_ITEM_PATH}/share/<int(max={MAX_ID}):group_id>", shares.unshare_project, status=204
)

job_token_scope = ResourceBlueprint(
    "job_token_scope", __name__, url_prefix="/projects/<string:reference>/job_token_scope"
)
job_token_scope.bind_action("GET", "", project_actions.show_job_token_scope)
job_token_scope.bind_action("PATCH", "", project_actions.change_job_token_scope, status=204)

# This service has no runners. These operations return status 404 until a release removes them.
runners = Blueprint("runners", __name__)


@runners.post("/runners")
@declare_error_statuses(HTTPStatus.NOT_FOUND)
@declare_operation("runners.register", status=HTTPStatus.GONE)
def register() -> None:
    """Register a runner with a registration token (until release 17.0).

    This service has no runners, so requests return 404. From release 17.0 on, requests with a
    registration token or runner arguments return 410.
    """
    raise _build_no_runners_error()


@runners.post("/runners/reset_registration_token")
@declare_error_statuses(HTTPStatus.NOT_FOUND)
@declare_operation("runners.reset_token", status=HTTPStatus.GONE)
def reset_token() -> None:
    """Reset the registration token of the instance (until release 18.0).

    This service has no runners, so requests return 404. From release 18.0 on, they return 410.
    """
    raise _build_no_runners_error()


@runners.post("/projects/<string:reference>/runners/reset_registration_token")
@declare_error_statuses(HTTPStatus.NOT_FOUND)
@declare_operation("runners.reset_project_token", status=HTTPStatus.GONE)
def reset_project_token() -> None:
    """Reset the registration token of a project (until release 18.0).

    This service has no runners, so requests return 404. From release 18.0 on, they return 410.
    """
    raise _build_no_runners_error()


@runners.post("/groups/<string:reference>/runners/reset_registration_token")
@declare_error_statuses(HTTPStatus.NOT_FOUND)
@declare_operation("runners.reset_group_token", status=HTTPStatus.GONE)
def reset_group_token() -> None:
    """Reset the registration token of a group (until release 18.0).

    This service has no runners, so requests return 404. From release 18.0 on, they return 410.
    """
    raise _build_no_runners_error()


def _build_no_runners_error() -> NotFoundError:
    return NotFoundError("This service has no runners.")
