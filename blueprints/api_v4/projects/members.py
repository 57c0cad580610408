"""/api/v4/{projects,groups}/:id/members: members of one project or group."""

from domain.projects import member_actions as actions
from web.access.api_limits import Family
from web.api.operations import Resources

members = Resources(
    "members",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/members",
)
members.bind("GET", "", actions.list_direct_members, limit=Family.MEMBERS)
members.bind("GET", "/all", actions.list_all_members, limit=Family.MEMBERS)
members.bind("GET", "/<int:user_id>", actions.show_direct_member, limit=Family.MEMBERS)
members.bind("GET", "/all/<int:user_id>", actions.show_member, limit=Family.MEMBERS)
members.bind("POST", "", actions.add_members)
members.bind("PUT", "/<int:user_id>", actions.change_member)
members.bind("DELETE", "/<int:user_id>", actions.remove_member)
