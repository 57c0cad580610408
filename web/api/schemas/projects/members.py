"""Members of projects and groups."""

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from domain.access.roles import Role
from domain.accounts.avatars import avatar_path
from domain.accounts.profiles import profile_path
from domain.database.paging import ListPart
from domain.projects.member_lists import MemberFilter
from domain.projects.views import GivenMemberRole, MemberView
from domain.types.base import (
    Body,
    GitLabQuery,
    GivenDay,
    Id,
    OffsetQuery,
    Resource,
    Search,
    Time,
    WithoutEffect,
    Words,
    split,
)

#: So many users can be added by one request.
_MOST_USERS = 100


def _numbers(value: Any) -> Any:
    return (value,) if isinstance(value, int) else split(value)


Ids = Annotated[tuple[Id, ...], BeforeValidator(_numbers), Field(max_length=_MOST_USERS)]


class MemberQuery(OffsetQuery, GitLabQuery):
    """Which members a list has."""

    #: Of names and user names.
    query: Search = ""
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

    def wanted(self, *, is_direct: bool) -> MemberFilter:
        """Return the filter; `is_direct` leaves those who were given a role here."""
        return MemberFilter(
            search=self.query,
            user_ids=self.user_ids,
            without=self.skip_users,
            is_direct=is_direct,
        )

    @property
    def part(self) -> ListPart:
        """The requested part of the list."""
        return ListPart(size=self.size, offset=self.offset)


class MemberBody(Body):
    """New members: by id or by user name, one or several."""

    user_id: Ids = ()
    username: Annotated[Words, Field(max_length=_MOST_USERS)] = ()
    access_level: Role
    #: The first day on which the role is not given any more.
    expires_at: GivenDay | None = None
    #: A custom role that is based on this one.
    member_role_id: Id | None = None


class MemberChangeBody(Body):
    """New values of a membership."""

    access_level: Role | None = None
    #: The first day on which the role is not given any more; null lets it last.
    expires_at: GivenDay | None = None
    #: A custom role that is based on the member's role; null takes it away.
    member_role_id: Id | None = None


class MemberRoleReference(Resource):
    """A custom role that a member has."""

    id: int
    name: str


class Member(Resource):
    """A member of a project or a group."""

    #: That of the user.
    id: int
    username: str
    name: str
    state: str
    avatar_url: str
    web_url: str
    access_level: int
    created_at: Time
    expires_at: date | None
    membership_state: Literal["active"] = "active"
    member_role: MemberRoleReference | None

    @classmethod
    def direct(cls, view: MemberView, base_url: str) -> "Member":
        """Present a membership with the role that was given here."""
        role = view.own_role or view.role
        return cls._of(view, base_url, role, view.own_expires_at, view.own_custom_role)

    @classmethod
    def effective(cls, view: MemberView, base_url: str) -> "Member":
        """Present a membership with the highest role, which may be inherited."""
        return cls._of(view, base_url, view.role, view.expires_at, view.custom_role)

    @classmethod
    def _of(
        cls,
        view: MemberView,
        base_url: str,
        role: Role,
        expires_at: date | None,
        custom: GivenMemberRole | None,
    ) -> "Member":
        return cls(
            id=view.user_id,
            username=view.username,
            name=view.name,
            state=view.state,
            avatar_url=f"{base_url}{avatar_path(view.name or view.username, view.user_id)}",
            web_url=f"{base_url}{profile_path(view.username)}",
            access_level=int(role),
            created_at=view.created_at,
            expires_at=expires_at,
            member_role=MemberRoleReference.model_validate(custom) if custom else None,
        )
