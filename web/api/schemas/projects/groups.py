"""Groups."""

from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field, WithJsonSchema

from domain.access.roles import Role
from domain.projects.editing import LONGEST_DESCRIPTION, GroupEdit
from domain.projects.listing import GroupDetails, GroupFilter
from domain.types.base import (
    AbsentFlag,
    AbsentWord,
    Body,
    GitLabQuery,
    Id,
    PagedQuery,
    Resource,
    Search,
    Text,
    Time,
    WithoutEffect,
    split,
)

#: Of a group or a project.
Description = Annotated[Text, Field(max_length=LONGEST_DESCRIPTION)]
Name = Annotated[Text, Field(max_length=255)]
Visibility = Literal["private", "internal", "public"]


def least_role(*, owned: bool, given: Role | None, is_member: bool) -> Role | None:
    """Return the lowest role that the caller has to have in what a list has."""
    if owned:
        return Role.OWNER
    return given or (Role.GUEST if is_member else None)


def _nearest_role(value: Any) -> Any:
    # GitLab has levels between ours, such as 5 for minimal access.
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    return _LEVELS_BETWEEN.get(number, number) if isinstance(number, int) else value


_LEVELS_BETWEEN = {5: Role.GUEST, 25: Role.DEVELOPER}
#: The lowest level of a role; one that only GitLab has stands for the next role.
LeastLevel = Annotated[
    Role,
    BeforeValidator(_nearest_role),
    WithJsonSchema({"type": "integer", "enum": sorted([*map(int, Role), *_LEVELS_BETWEEN])}),
]


class GroupQuery(PagedQuery, GitLabQuery):
    """Which of the groups that the caller sees a list has."""

    #: Of names and paths.
    search: Search = ""
    owned: bool = False
    min_access_level: LeastLevel | None = None
    top_level_only: bool = False
    #: `false` leaves groups in which the caller is a member.
    all_available: bool = True
    skip_groups: Annotated[tuple[Id, ...], BeforeValidator(split)] = ()
    #: That of the most visible project of a group.
    visibility: Visibility | None = None
    #: `similarity` is the order by name.
    order_by: Literal["name", "path", "id", "similarity"] = "name"
    sort: Literal["asc", "desc"] = "asc"
    #: Groups cannot be archived: `false` leaves none.
    active: bool | None = None
    archived: AbsentFlag = False
    marked_for_deletion_on: AbsentWord = ""
    repository_storage: WithoutEffect = ""
    statistics: WithoutEffect = ""
    with_custom_attributes: WithoutEffect = ""

    @property
    def finds_nothing(self) -> bool:
        """Whether it asks for what no group is."""
        return self.active is False or super().finds_nothing

    def wanted(self, *, parent_id: int | None = None, below_id: int | None = None) -> GroupFilter:
        """Return the filter, limited to subgroups, or to all groups below one."""
        return GroupFilter(
            parent_id=parent_id,
            below_id=below_id,
            is_top_level=self.top_level_only,
            least=least_role(
                owned=self.owned,
                given=self.min_access_level,
                is_member=not self.all_available,
            ),
            search=self.search,
            without=self.skip_groups,
            visibility=self.visibility,
        )


class GroupBody(Body):
    """A new group; with `parent_id` a subgroup."""

    name: Name = ""
    path: Name
    parent_id: Id | None = None
    description: Description = ""


class GroupChangeBody(Body):
    """New values of a group."""

    name: Name | None = None
    #: The last part of the full path; URLs with the former one still lead here.
    path: Name | None = None
    description: Description | None = None

    @property
    def edit(self) -> GroupEdit:
        """The new values."""
        return GroupEdit(name=self.name, description=self.description)


class GroupTransferBody(Body):
    """Where a group moves to."""

    #: The id of a group; without one, the group moves to the top level.
    group_id: Id | None = None


class TransferQuery(PagedQuery, GitLabQuery):
    """Which of the groups that take a transfer a list has."""

    #: Of names and paths.
    search: Search = ""
    order_by: Literal["name", "path", "id"] = "name"
    sort: Literal["asc", "desc"] = "asc"

    def wanted(self, *, without: tuple[int, ...] = ()) -> GroupFilter:
        """Return the filter: the caller can create projects and groups there."""
        return GroupFilter(least=Role.MAINTAINER, search=self.search, without=without)


class Group(Resource):
    """A group."""

    id: int
    name: str
    #: The last part of `full_path`.
    path: str
    full_path: str
    #: The names of the groups above it, and its own.
    full_name: str
    description: str
    #: That of its most visible project: who sees a project sees its group.
    visibility: Visibility
    parent_id: int | None
    web_url: str
    created_at: Time

    @classmethod
    def of(cls, found: GroupDetails, base_url: str) -> "Group":
        """Present a group."""
        group = found.group
        return cls(
            id=group.id,
            name=group.name,
            path=group.path.rpartition("/")[2],
            full_path=group.path,
            full_name=" / ".join(found.names),
            description=group.description,
            visibility=cast("Visibility", found.visibility),
            parent_id=group.parent_id,
            web_url=f"{base_url}/{group.path}",
            created_at=group.created_at,
        )


class Accepted(Resource):
    """The response to a request that is processed in the background."""

    message: str = "202 Accepted"
