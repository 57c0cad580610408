"""/api/v4/groups: groups, the groups below them, and their projects."""

from http import HTTPStatus

from domain.projects import group_actions as actions
from web.access.api_limits import Family
from web.api.description.described import refuses_with
from web.api.operations import Resources

groups = Resources("groups", __name__, url_prefix="/groups")
_ONE = "/<string:reference>"
#: The group that something is put into.
_MAY_BE_MISSING = refuses_with(HTTPStatus.NOT_FOUND)

groups.bind("GET", "", actions.list_groups, limit=Family.GROUPS)
groups.bind("POST", "", actions.create_group, around=[_MAY_BE_MISSING])
groups.bind("GET", _ONE, actions.show_group, limit=Family.GROUP)
groups.bind("PUT", _ONE, actions.change_group)
groups.bind("DELETE", _ONE, actions.delete_group, status=HTTPStatus.ACCEPTED)
groups.bind("POST", f"{_ONE}/transfer", actions.transfer_group, around=[_MAY_BE_MISSING])
groups.bind(
    "GET", f"{_ONE}/transfer_locations", actions.list_transfer_locations, limit=Family.GROUPS
)
groups.bind("GET", f"{_ONE}/subgroups", actions.list_subgroups, limit=Family.GROUPS)
groups.bind("GET", f"{_ONE}/descendant_groups", actions.list_descendant_groups, limit=Family.GROUPS)
groups.bind("GET", f"{_ONE}/projects", actions.list_group_projects, limit=Family.GROUP_PROJECTS)
