"""Members of projects and groups, and their custom roles, as all faces see them."""

from datetime import date, timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from domain.access.roles import Ability, Role, role_named
from domain.accounts.profiles import UserReference
from domain.core.types.base import (
    Argument,
    Body,
    GitLabQuery,
    GivenDay,
    Id,
    OffsetQuery,
    Option,
    RequiredText,
    Resource,
    Search,
    Text,
    Time,
    WithoutEffect,
    Words,
    split,
)
from domain.projects.views import Namespace

#: An invitation that nobody has accepted ends after this time.
INVITATION_LIFETIME = timedelta(days=30)
#: So many users can be added by one request.
_MOST_USERS = 100
#: So many addresses can be invited by one request.
_MOST_ADDRESSES = 20


def _role(value: Any) -> Any:
    is_word = isinstance(value, str) and not value.strip().isdecimal()
    return role_named(value) if is_word else value


#: A role by its name, or by the number of its access level.
GivenRole = Annotated[Role, BeforeValidator(_role)]


class NewMemberRole(Body):
    """A new member role."""

    name: RequiredText
    description: Text = ""
    #: Guest 10, Planner 15, Reporter 20, Developer 30 or Maintainer 40.
    base_access_level: GivenRole
    read_code: bool = False
    read_alerts: bool = False
    #: Includes read_alerts.
    admin_alerts: bool = False
    read_environments: bool = False
    #: Includes read_environments.
    admin_environments: bool = False
    admin_integrations: bool = False

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it adds to the role that it is based on."""
        return frozenset(each for each in Ability if getattr(self, each))


class MemberRole(Resource):
    """A custom role, with a boolean for each permission that it can add."""

    id: int
    name: str
    description: str
    group_id: int | None = Field(
        description="Id of the group that the role belongs to. Null for a role of the instance."
    )
    base_access_level: int
    read_code: bool
    read_alerts: bool
    admin_alerts: bool
    read_environments: bool
    admin_environments: bool
    admin_integrations: bool
    created_at: Time = Field(exclude=True)

    @property
    def base(self) -> Role:
        """The role that it is based on."""
        return Role(self.base_access_level)

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it adds to that role."""
        return frozenset(each for each in Ability if getattr(self, each))


def _numbers(value: Any) -> Any:
    return (value,) if isinstance(value, int) else split(value)


Ids = Annotated[tuple[Id, ...], BeforeValidator(_numbers), Field(max_length=_MOST_USERS)]


class MemberQuery(OffsetQuery, GitLabQuery):
    """Which members a list has."""

    #: Of names and user names.
    query: Annotated[Search, Option("--search")] = ""
    user_ids: Ids = ()
    skip_users: Ids = ()
    #: Every member is active: `awaiting` leaves none.
    state: Literal["active", "awaiting"] = "active"
    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"
    show_seat_info: WithoutEffect = ""
    with_saml_identity: WithoutEffect = ""

    @property
    def finds_nothing(self) -> bool:
        """Whether it asks for what no member is."""
        return self.state == "awaiting"


class NewMembers(Body):
    """New members: by id or by user name, one or several."""

    user_id: Ids = ()
    username: Annotated[Words, Field(max_length=_MOST_USERS), Argument("USER")] = ()
    access_level: Annotated[GivenRole, Argument("ROLE")]
    #: The first day on which the role is not given any more.
    expires_at: GivenDay | None = None
    #: A custom role that is based on this one.
    member_role_id: Id | None = None


class MemberChange(Body):
    """New values of a membership."""

    access_level: Annotated[GivenRole | None, Argument("ROLE")] = None
    #: The first day on which the role is not given any more; null lets it last.
    expires_at: GivenDay | None = None
    #: A custom role that is based on the member's role; null takes it away.
    member_role_id: Id | None = None


class MemberRoleGift(Body):
    """The custom role that a member gets."""

    #: 0 for none.
    member_role_id: Annotated[int, Field(ge=0), Argument("MEMBER-ROLE-ID")]


class MemberRoleReference(Resource):
    """A custom role that a member has."""

    id: int
    name: str


class Member(UserReference):
    """A member of a project or a group; the id is that of the user."""

    access_level: int
    created_at: Time
    expires_at: date | None
    membership_state: Literal["active"] = "active"
    #: GitLab omits it, too, and clients such as gitlabform take its presence for a custom role.
    member_role: MemberRoleReference | None = Field(
        default=None,
        exclude_if=lambda role: role is None,
        description="Custom role of the member. Omitted if the member has none.",
    )


class AddedMembers(Resource):
    """The response to a request that added several members."""

    status: Literal["success"] = "success"


class InvitationQuery(OffsetQuery, GitLabQuery):
    """Which of the pending invitations a list has."""

    #: Of the e-mail address.
    query: Search = ""
    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class NewInvitations(Body):
    """Invitations to one address or several."""

    email: Annotated[Words, Field(min_length=1, max_length=_MOST_ADDRESSES)]
    access_level: GivenRole
    #: Of the membership: the first day on which the role is not given any more.
    expires_at: GivenDay | None = None


class InvitationChange(Body):
    """New values of an invitation."""

    access_level: GivenRole | None = None
    expires_at: GivenDay | None = None


class InvitationResult(Resource):
    """Result of an invitation, with the reason for each address that was not invited."""

    status: Literal["success", "error"]
    message: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)


class Invitation(Resource):
    """A pending invitation."""

    id: int
    invite_email: str
    access_level: int
    created_at: Time
    #: Of the membership.
    expires_at: date | None
    created_by_name: str
    group_id: int | None = Field(exclude=True)
    project_id: int | None = Field(exclude=True)
    path: str = Field(exclude=True)

    @property
    def namespace(self) -> Namespace:
        """What the person is invited to."""
        return Namespace(group_id=self.group_id, project_id=self.project_id, path=self.path)

    @property
    def role(self) -> Role:
        """The role that is offered."""
        return Role(self.access_level)
