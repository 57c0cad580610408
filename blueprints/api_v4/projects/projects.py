"""/api/v4/projects: projects, where they are, and whether they take changes."""

from http import HTTPStatus

from domain.projects import project_actions as actions
from web.access.api_limits import Family
from web.api.description.described import refuses_with
from web.api.operations import Resources

projects = Resources("projects", __name__, url_prefix="/projects")
_ONE = "/<string:reference>"
#: The group that something is put into.
_MAY_BE_MISSING = refuses_with(HTTPStatus.NOT_FOUND)

projects.bind("GET", "", actions.list_projects, limit=Family.PROJECTS)
projects.bind("POST", "", actions.create_project, around=[_MAY_BE_MISSING])
projects.bind("GET", _ONE, actions.show_project, limit=Family.PROJECT)
projects.bind("PUT", _ONE, actions.change_project)
projects.bind("DELETE", _ONE, actions.delete_project, status=HTTPStatus.ACCEPTED)
projects.bind("PUT", f"{_ONE}/transfer", actions.transfer_project, around=[_MAY_BE_MISSING])
projects.bind(
    "GET", f"{_ONE}/transfer_locations", actions.list_transfer_locations, limit=Family.GROUPS
)
projects.bind("POST", f"{_ONE}/archive", actions.archive)
projects.bind("POST", f"{_ONE}/unarchive", actions.unarchive)
