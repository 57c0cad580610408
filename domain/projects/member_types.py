"""API types for members of projects and groups, invitations and custom roles."""

from datetime import date, timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from domain.access.roles import Ability, Role, parse_role
from domain.accounts.profiles import UserReference
from domain.core.types.base import (
    Argument,
    Body,
    GitLabQuery,
    Id,
    Option,
    RequestDay,
    RequiredText,
    Resource,
    Search,
    Text,
    Time,
    WithoutEffect,
    Words,
    split_words,
)
from domain.core.types.pagination import OffsetQuery
from domain.projects.views import Namespace
from models.folding import fold_text

#: Time after which an invitation expires.
INVITATION_LIFETIME = timedelta(days=30)
#: Maximum number of users in a request that adds members.
_MAX_USERS = 100
#: Maximum number of email addresses in a request that sends invitations.
_MAX_ADDRESSES = 20


def _parse_role(value: Any) -> Any:
    is_word = isinstance(value, str) and not value.strip().isdecimal()
    return parse_role(value) if is_word else value


#: Role, given by name or by access level.
RoleParameter = Annotated[Role, BeforeValidator(_parse_role)]


class NewMemberRole(Body):
    """Request body that creates a custom role."""

    name: RequiredText
    description: Text = ""
    #: Access level of the base role: Guest 10, Planner 15, Reporter 20, Developer 30 or Maintainer
    #: 40.
    base_access_level: RoleParameter
    read_code: bool = False
    read_alerts: bool = False
    #: Permission to handle alerts, which includes `read_alerts`.
    admin_alerts: bool = False
    read_environments: bool = False
    #: Permission to manage environments, which includes `read_environments`.
    admin_environments: bool = False
    admin_integrations: bool = False

    @property
    def abilities(self) -> frozenset[Ability]:
        """The abilities that the custom role adds to its base role."""
        return frozenset(each for each in Ability if getattr(self, each))


class MemberRole(Resource):
    """A custom role, with a boolean for each permission that it can add."""

    id: int
    name: str
    description: str
    group_id: int | None = Field(
        description="Id of the group that the role belongs to. Null for an instance-wide role."
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
        """The base role."""
        return Role(self.base_access_level)

    @property
    def abilities(self) -> frozenset[Ability]:
        """The abilities that the custom role adds to its base role."""
        return frozenset(each for each in Ability if getattr(self, each))


def _parse_ids(value: Any) -> Any:
    return (value,) if isinstance(value, int) else split_words(value)


Ids = Annotated[tuple[Id, ...], BeforeValidator(_parse_ids), Field(max_length=_MAX_USERS)]


class MemberQuery(OffsetQuery, GitLabQuery):
    """Filters for a list of members."""

    #: Text to search for in names and usernames.
    query: Annotated[Search, Option("--search")] = ""
    user_ids: Ids = ()
    skip_users: Ids = ()
    #: State of the members. Every member is active, so `awaiting` returns an empty list.
    state: Literal["active", "awaiting"] = "active"
    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"
    show_seat_info: WithoutEffect = ""
    with_saml_identity: WithoutEffect = ""

    @property
    def matches_nothing(self) -> bool:
        """True if the query filters by a state that no member has."""
        return self.state == "awaiting"


class NewMembers(Body):
    """Users to add as members, given by id or username."""

    user_id: Ids = ()
    username: Annotated[Words, Field(max_length=_MAX_USERS), Argument("USER")] = ()
    access_level: Annotated[RoleParameter, Argument("ROLE")]
    #: First day on which the member no longer has the role.
    expires_at: RequestDay | None = None
    #: Id of a custom role. Its base role must be the given role.
    member_role_id: Id | None = None


class MemberChange(Body):
    """Changes to a membership."""

    access_level: Annotated[RoleParameter | None, Argument("ROLE")] = None
    #: First day on which the member no longer has the role. null removes the expiry date.
    expires_at: RequestDay | None = None
    #: Id of a custom role. Its base role must be the member's role. null removes the custom role.
    member_role_id: Id | None = None


class MemberRoleGift(Body):
    """The custom role to assign to a member."""

    #: Id of the custom role, or 0 to remove the member's custom role.
    member_role_id: Annotated[int, Field(ge=0), Argument("MEMBER-ROLE-ID")]


class MemberRoleReference(Resource):
    """A custom role that a member has."""

    id: int
    name: str


class Member(UserReference):
    """A member of a project or group; `id` is the id of the user."""

    access_level: int
    created_at: Time
    expires_at: date | None
    membership_state: Literal["active"] = "active"
    #: Custom role. Omitted if there is none, as in GitLab, because clients such as gitlabform check
    #: only whether the field exists.
    member_role: MemberRoleReference | None = Field(
        default=None,
        exclude_if=lambda role: role is None,
        description="Custom role of the member. Omitted if the member has none.",
    )


class AddedMembers(Resource):
    """The response to a request that added several members."""

    status: Literal["success"] = "success"


class InvitationQuery(OffsetQuery, GitLabQuery):
    """Filters for a list of pending invitations."""

    #: Text to search for in email addresses.
    query: Search = ""
    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


def _remove_repeated_addresses(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """Remove addresses that differ from an earlier address only in case."""
    first: dict[str, str] = {}
    for each in addresses:
        first.setdefault(fold_text(each), each)
    return tuple(first.values())


class NewInvitations(Body):
    """Invitations to one or more email addresses."""

    email: Annotated[
        Words,
        Field(min_length=1, max_length=_MAX_ADDRESSES),
        AfterValidator(_remove_repeated_addresses),
    ]
    access_level: RoleParameter
    #: First day on which the new member no longer has the role.
    expires_at: RequestDay | None = None


class InvitationChange(Body):
    """Changes to an invitation."""

    access_level: RoleParameter | None = None
    expires_at: RequestDay | None = None


class InvitationResult(Resource):
    """The result of invitations, with the reason for each address that was not invited."""

    status: Literal["success", "error"]
    message: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)


class Invitation(Resource):
    """A pending email invitation to a group or project."""

    id: int
    invite_email: str
    access_level: int
    created_at: Time
    #: Expiry date of the membership.
    expires_at: date | None
    created_by_name: str
    group_id: int | None = Field(exclude=True)
    project_id: int | None = Field(exclude=True)
    path: str = Field(exclude=True)

    @property
    def namespace(self) -> Namespace:
        """The group or project of the invitation."""
        return Namespace(group_id=self.group_id, project_id=self.project_id, path=self.path)

    @property
    def role(self) -> Role:
        """The role that the invitation offers."""
        return Role(self.access_level)
