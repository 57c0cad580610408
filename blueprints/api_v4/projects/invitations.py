"""/api/v4/{projects,groups}/:id/invitations: invitations by e-mail to become a member."""

from domain.projects import invitation_actions as actions
from web.access.api_limits import Family
from web.api.operations import Resources

invitations = Resources(
    "invitations",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/invitations",
)
invitations.bind("GET", "", actions.list_invitations, limit=Family.MEMBERS)
invitations.bind("POST", "", actions.invite)
invitations.bind("PUT", "/<string:email>", actions.change_invitation)
invitations.bind("DELETE", "/<string:email>", actions.revoke_invitation)
