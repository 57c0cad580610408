"""API types for members of projects and groups, invitations and custom roles."""

import re
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
from models.case_folding import fold_text

#: Time after which an invitation expires.
INVITATION_LIFETIME = timedelta(days=30)
#: Maximum number of users in a request that adds members.
_MAX_USERS = 100
#: Maximum number of email addresses in a request that sends invitations.
_MAX_ADDRESSES = 20
#: A recipient with a display name, such as `"Park, Nina" <nina@example.com>`.
_NAMED_RECIPIENT = re.compile(r'(?:"[^"]*"|[^<>",;\n])*<(?P<address>[^<>]*)>')


def _parse_role(value: Any) -> Any:
    is_word = isinstance(value, str) and not value.strip().isdecimal()
    return parse_role(value) if is_word else value


#: Role, given by name or by access level.
RoleParameter = Annotated[Role, BeforeValidator(_parse_role)]


class NewMemberRole(Body):
    """Request body for creating a custom role."""

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
        description="ID of the group that the role belongs to. Null for an instance-wide role."
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
    def base_role(self) -> Role:
        """The base role, to which the custom role adds abilities."""
        return Role(self.base_access_level)

    @property
    def abilities(self) -> frozenset[Ability]:
        """The abilities that the custom role adds to its base role."""
        return frozenset(each for each in Ability if getattr(self, each))


def _parse_ids(value: Any) -> Any:
    return (value,) if isinstance(value, int) else split_words(value)


Ids = Annotated[tuple[Id, ...], BeforeValidator(_parse_ids), Field(max_length=_MAX_USERS)]


class MemberQuery(OffsetQuery, GitLabQuery):
    """Query parameters that filter a list of members by name, user ID or state."""

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
    """Users to add as members, given by ID or username."""

    user_id: Ids = ()
    username: Annotated[Words, Field(max_length=_MAX_USERS), Argument("USER")] = ()
    access_level: Annotated[RoleParameter, Argument("ROLE")]
    #: First day on which the member no longer has the role.
    expires_at: RequestDay | None = None
    #: ID of a custom role. Its base role must be the given role.
    member_role_id: Id | None = None


class MemberChange(Body):
    """The new role, expiry date or custom role of a member."""

    access_level: Annotated[RoleParameter | None, Argument("ROLE")] = None
    #: First day on which the member no longer has the role. null removes the expiry date.
    expires_at: RequestDay | None = None
    #: ID of a custom role. Its base role must be the member's role. null removes the custom role.
    member_role_id: Id | None = None


class MemberRoleAssignment(Body):
    """The ID of the custom role to assign to a member, or 0 to remove the custom role."""

    #: ID of the custom role, or 0 to remove the member's custom role.
    member_role_id: Annotated[int, Field(ge=0), Argument("MEMBER-ROLE-ID")]


class MemberRoleReference(Resource):
    """The ID and the name of a member's custom role."""

    id: int
    name: str


class Member(UserReference):
    """A member of a project or group.

    `id` is the ID of the user.
    """

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
    """Query parameters that filter a list of pending invitations by email address."""

    #: Text to search for in email addresses.
    query: Search = ""
    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


def _split_addresses(value: Any) -> Any:
    """Split a string at commas, semicolons and spaces, and return other values unchanged.

    Display names are removed, as in `Nina Park <nina@example.com>`.
    """
    if not isinstance(value, str):
        return value
    return split_words(_NAMED_RECIPIENT.sub(r" \g<address> ", value).replace(";", ","))


def _remove_repeated_addresses(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """Remove addresses that differ from an earlier address only in case."""
    first: dict[str, str] = {}
    for each in addresses:
        first.setdefault(fold_text(each), each)
    return tuple(first.values())


class NewInvitations(Body):
    """The email addresses to invite, with the role and expiry date of the new members."""

    email: Annotated[
        Words,
        BeforeValidator(_split_addresses),
        Field(min_length=1, max_length=_MAX_ADDRESSES),
        AfterValidator(_remove_repeated_addresses),
    ]
    access_level: RoleParameter
    #: First day on which the new member no longer has the role.
    expires_at: RequestDay | None = None


class InvitationChange(Body):
    """The new role or expiry date of an invitation."""

    access_level: RoleParameter | None = None
    expires_at: RequestDay | None = None


class InvitationResult(Resource):
    """The result of sending invitations, with the reason for each address that was not invited."""

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
        """The group or project that the invitation is for."""
        return Namespace(group_id=self.group_id, project_id=self.project_id, path=self.path)

    @property
    def role(self) -> Role:
        """The role that the invitation offers."""
        return Role(self.access_level)
