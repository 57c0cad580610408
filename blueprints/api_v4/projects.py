"""/api/v4/groups, /api/v4/projects, and /api/v4/runners until later releases remove it."""

from http import HTTPStatus

from flask import Blueprint

from domain.core.database.paging import LARGEST_ID
from domain.core.errors import NotFoundError
from domain.projects import group_actions, project_actions, shares
from web.access.api_limits import Family
from web.api.description.described import refuses_with
from web.api.operations import Resources, operation

_ONE = "/<string:reference>"
#: Error 404 for requests that name a target group that does not exist.
_MAY_BE_MISSING = refuses_with(HTTPStatus.NOT_FOUND)

groups = Resources("groups", __name__, url_prefix="/groups")
groups.bind("GET", "", group_actions.list_groups, limit=Family.GROUPS)
groups.bind("POST", "", group_actions.create_group, around=[_MAY_BE_MISSING])
groups.bind("GET", _ONE, group_actions.show_group, limit=Family.GROUP)
groups.bind("PUT", _ONE, group_actions.change_group)
groups.bind("DELETE", _ONE, group_actions.delete_group, status=HTTPStatus.ACCEPTED)
groups.bind("POST", f"{_ONE}/transfer", group_actions.transfer_group, around=[_MAY_BE_MISSING])
groups.bind(
    "GET",
    f"{_ONE}/transfer_locations",
    group_actions.list_transfer_locations,
    limit=Family.GROUPS,
)
groups.bind("GET", f"{_ONE}/subgroups", group_actions.list_subgroups, limit=Family.GROUPS)
groups.bind(
    "GET", f"{_ONE}/descendant_groups", group_actions.list_descendant_groups, limit=Family.GROUPS
)
groups.bind(
    "GET", f"{_ONE}/projects", group_actions.list_group_projects, limit=Family.GROUP_PROJECTS
)

namespaces = Resources("namespaces", __name__, url_prefix="/namespaces")
namespaces.bind("GET", "", group_actions.list_namespaces, limit=Family.GROUPS)
namespaces.bind("GET", _ONE, group_actions.show_namespace, limit=Family.GROUP)

projects = Resources("projects", __name__, url_prefix="/projects")
projects.bind("GET", "", project_actions.list_projects, limit=Family.PROJECTS)
projects.bind("POST", "", project_actions.create_project, around=[_MAY_BE_MISSING])
projects.bind("GET", _ONE, project_actions.show_project, limit=Family.PROJECT)
projects.bind("PUT", _ONE, project_actions.change_project)
projects.bind("DELETE", _ONE, project_actions.delete_project, status=HTTPStatus.ACCEPTED)
projects.bind("PUT", f"{_ONE}/transfer", project_actions.transfer_project, around=[_MAY_BE_MISSING])
projects.bind(
    "GET",
    f"{_ONE}/transfer_locations",
    project_actions.list_transfer_locations,
    limit=Family.GROUPS,
)
projects.bind("POST", f"{_ONE}/archive", project_actions.archive)
projects.bind("POST", f"{_ONE}/unarchive", project_actions.unarchive)
projects.bind("POST", f"{_ONE}/share", shares.share_project, around=[_MAY_BE_MISSING])
projects.bind(
    "DELETE", f"{_ONE}/share/<int(max={LARGEST_ID}):group_id>", shares.unshare_project, status=204
)

job_token_scope = Resources(
    "job_token_scope", __name__, url_prefix="/projects/<string:reference>/job_token_scope"
)
job_token_scope.bind("GET", "", project_actions.show_limits)
job_token_scope.bind("PATCH", "", project_actions.change_limits, status=204)

# This service has no runners. Requests get status 404 until a release removes these operations.
runners = Blueprint("runners", __name__)


@runners.post("/runners")
@refuses_with(HTTPStatus.NOT_FOUND)
@operation("runners.register", status=HTTPStatus.GONE)
def register() -> None:
    """Register a runner with a registration token (until release 17.0).

    This service has no runners, so the response is 404. From release 17.0 on, requests with a
    registration token or runner arguments return 410.
    """
    raise _no_runners()


@runners.post("/runners/reset_registration_token")
@refuses_with(HTTPStatus.NOT_FOUND)
@operation("runners.reset_token", status=HTTPStatus.GONE)
def reset_token() -> None:
    """Reset the registration token of the instance (until release 18.0).

    This service has no runners, so the response is 404, and 410 from release 18.0 on.
    """
    raise _no_runners()


@runners.post("/projects/<string:reference>/runners/reset_registration_token")
@refuses_with(HTTPStatus.NOT_FOUND)
@operation("runners.reset_project_token", status=HTTPStatus.GONE)
def reset_project_token() -> None:
    """Reset the registration token of a project (until release 18.0).

    This service has no runners, so the response is 404, and 410 from release 18.0 on.
    """
    raise _no_runners()


@runners.post("/groups/<string:reference>/runners/reset_registration_token")
@refuses_with(HTTPStatus.NOT_FOUND)
@operation("runners.reset_group_token", status=HTTPStatus.GONE)
def reset_group_token() -> None:
    """Reset the registration token of a group (until release 18.0).

    This service has no runners, so the response is 404, and 410 from release 18.0 on.
    """
    raise _no_runners()


def _no_runners() -> NotFoundError:
    return NotFoundError("This service has no runners.")
