"""Lists members of groups and projects page by page, since a group may have 100,000 members."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, SQLColumnExpression, case, func, or_, select
from sqlalchemy.orm import Session

from domain.access.roles import MINIMUM_ROLES, Ability, Role, parse_abilities
from domain.accounts.users import IS_ACTIVE_HUMAN
from domain.core.database.pagination import MAX_ID, PageRequest, PageResult, fetch_list_page
from domain.core.errors import NotFoundError
from domain.projects.member_roles import is_custom_role_of_member
from domain.projects.members import is_direct_membership
from domain.projects.namespace_lists import find_shared_groups
from domain.projects.paths import list_ancestor_paths
from domain.projects.views import AssignedMemberRole, MemberView, Namespace, SharedGroup, Viewer
from domain.projects.visibility_sql import is_membership_active
from models import Group, Member, MemberRole, Project, User
from models.case_folding import build_search_text, fold_text

_SEARCH_COLUMNS = (
    build_search_text(User.username, User.username_key),
    build_search_text(User.name, User.name_key),
)
#: Maximum number of suggested people, and of memberships that are searched for them.
_MAX_CANDIDATES, _MAX_CONSIDERED = 200, 1_000


@dataclass(frozen=True, kw_only=True)
class MemberFilter:
    """The filters for a list of members. By default, they match all members."""

    #: Text to search for in names and usernames.
    search: str = ""
    user_ids: Sequence[int] = ()
    without: Sequence[int] = ()
    #: True if only direct members are listed.
    is_direct: bool = False


def list_members(
    namespace: Namespace,
    member_filter: MemberFilter,
    page_request: PageRequest,
    *,
    viewer_id: int | None,
    session: Session,
    today: date,
) -> PageResult[MemberView]:
    """Return a page of the direct and inherited members, without duplicates.

    If members are ordered by `role`, the highest role is first, and members with the same role are
    sorted by username. Each member is returned with the highest of their roles. A lower direct role
    is also returned, since it remains when the inherited role ends.
    """
    groups = _find_member_sources(namespace, session=session, today=today)
    found = _select_users(namespace, groups, member_filter, today).subquery()
    if page_request.order_by == "role":
        highest = (
            select(found.c.user_id, found.c.role, User.username)
            .join(User, User.id == found.c.user_id)
            .subquery()
        )
        orders = {"id": highest.c.username, "role": -highest.c.role}
        statement = select(highest.c.user_id)
    else:
        orders, statement = {"id": found.c.user_id}, select(found.c.user_id)
    page = fetch_list_page(statement, orders, page_request, session=session)
    views = _build_member_views(
        namespace,
        groups,
        [row[0] for row in page.items],
        viewer_id=viewer_id,
        session=session,
        today=today,
    )
    return PageResult(items=views, total=page.total, next_cursor=page.next_cursor)


def find_effective_member(
    namespace: Namespace,
    user_id: int,
    *,
    session: Session,
    today: date,
    viewer_id: int | None = None,
) -> MemberView | None:
    """Return the direct or inherited member with the given user ID, or None."""
    if user_id > MAX_ID:
        return None
    groups = _find_member_sources(namespace, session=session, today=today)
    views = _build_member_views(
        namespace, groups, [user_id], viewer_id=viewer_id, session=session, today=today
    )
    return views[0] if views else None


def get_direct_member(
    namespace: Namespace,
    member_id: int,
    *,
    viewer_id: int | None,
    session: Session,
    today: date,
) -> MemberView:
    """Return the member whose direct membership has the given ID.

    Raise NotFoundError if there is no such membership.
    """
    here = select(Member.user_id).where(Member.id == member_id, is_direct_membership(namespace))
    user_id = session.scalar(here) if member_id <= MAX_ID else None
    found = user_id and find_effective_member(
        namespace, user_id, session=session, today=today, viewer_id=viewer_id
    )
    if not found or found.id != member_id:
        raise NotFoundError("Member not found.")
    return found


class MemberSuggestion(NamedTuple):
    """The username and the name of a suggested member."""

    username: str
    name: str


def list_member_suggestions(
    namespace: Namespace, viewer: Viewer, *, session: Session
) -> Sequence[MemberSuggestion]:
    """Return people who share a group or project with the viewer.

    Direct members of this namespace are omitted. The list is a suggestion: it contains up to
    `_MAX_CANDIDATES` people, sorted by username.
    """
    own = select(Member.group_id, Member.project_id).where(
        Member.user_id == viewer.user_id, is_membership_active(viewer.today)
    )
    groups = own.with_only_columns(Member.group_id).where(Member.group_id.is_not(None))
    projects = own.with_only_columns(Member.project_id).where(Member.project_id.is_not(None))
    beneath = select(Project.id).where(Project.group_id.in_(groups))
    known = select(Member.user_id).where(
        or_(
            Member.group_id.in_(groups),
            Member.project_id.in_(projects),
            Member.project_id.in_(beneath),
        )
    )
    here = select(Member.user_id).where(is_direct_membership(namespace))
    people = (
        select(User.username, User.name)
        .where(
            User.id.in_(known.limit(_MAX_CONSIDERED).subquery().select()),
            User.id.not_in(here),
            IS_ACTIVE_HUMAN,
        )
        .order_by(User.username)
        .limit(_MAX_CANDIDATES)
    )
    return [MemberSuggestion(*row) for row in session.execute(people)]


def list_usernames_with_ability(
    ability: Ability, namespace: Namespace, *, limit: int, session: Session, today: date
) -> Sequence[str]:
    """Return the sorted usernames of up to `limit` members who have an ability in a namespace."""
    able = _select_users_with_ability(ability, namespace, session=session, today=today)
    some = able.distinct().order_by(Member.user_id).limit(limit)
    names = select(User.username).where(User.id.in_(some.subquery().select()))
    return sorted(session.scalars(names), key=str.lower)


def find_users_with_ability(
    condition: ColumnElement[bool],
    ability: Ability,
    namespace: Namespace,
    *,
    session: Session,
    today: date,
) -> Mapping[int, str]:
    """Return the usernames of matching people who have an ability in a namespace, by user ID.

    `condition` should match only a few users. Locked accounts and bots are omitted.
    """
    able = _select_users_with_ability(ability, namespace, session=session, today=today)
    rows = session.execute(
        select(User.id, User.username).where(condition, IS_ACTIVE_HUMAN, User.id.in_(able))
    )
    return {row.id: row.username for row in rows}


def _select_users_with_ability(
    ability: Ability, namespace: Namespace, *, session: Session, today: date
) -> Select[int]:
    """Select the IDs of users who have an ability through their role or a custom role."""
    groups = _find_member_sources(namespace, session=session, today=today)
    members = (
        select(Member.user_id)
        .outerjoin(MemberRole, is_custom_role_of_member())
        .where(_is_membership_in(namespace, groups), is_membership_active(today))
    )
    has_role = _select_effective_role(groups) >= int(MINIMUM_ROLES[ability])
    custom = [
        row.id
        for row in session.execute(select(MemberRole.id, MemberRole.abilities))
        if ability in parse_abilities(row.abilities)
    ]
    by_custom = MemberRole.id.in_(custom) & or_(
        Member.group_id.is_(None), Member.group_id.not_in(_list_sharing_group_ids(groups))
    )
    return members.where(or_(has_role, by_custom) if custom else has_role)


def find_ability_end_dates(
    ability: Ability,
    namespace: Namespace,
    user_ids: Collection[int],
    *,
    session: Session,
    today: date,
) -> dict[int, date | None]:
    """Return the users who have an ability in a namespace, and the date when the ability ends.

    The keys are the IDs of the users. The date is the first day without the ability, or None if the
    ability does not end.
    """
    groups = _find_member_sources(namespace, session=session, today=today)
    rows = session.execute(
        select(Member, MemberRole)
        .outerjoin(MemberRole, is_custom_role_of_member())
        .where(
            Member.user_id.in_(user_ids),
            _is_membership_in(namespace, groups),
            is_membership_active(today),
        )
    )
    found: dict[int, date | None] = {}
    for member, custom in rows:
        each = _build_membership(member, custom, groups)
        if each.role >= MINIMUM_ROLES[ability] or ability in parse_abilities(each.abilities):
            before = found.get(member.user_id, each.expires_at)
            found[member.user_id] = _choose_later_date(before, each.expires_at)
    return found


def _choose_later_date(one: date | None, other: date | None) -> date | None:
    return None if one is None or other is None else max(one, other)


class _MemberSource(NamedTuple):
    """A group whose members are also members of a namespace.

    It is an ancestor group of the namespace, or a group with which the project is shared.
    """

    path: str
    #: Maximum role of the group's members in the namespace, and the day on which the role ends.
    most: Role = Role.OWNER
    until: date | None = None
    #: True if the project is shared with the group. Custom roles count only in ancestor groups.
    is_shared: bool = False


_MemberSources = Mapping[int, _MemberSource]
_DIRECT_SOURCE = _MemberSource("")


def _find_member_sources(namespace: Namespace, *, session: Session, today: date) -> _MemberSources:
    """Return the groups whose members are also members of a namespace, by group ID."""
    found: dict[int, _MemberSource] = {}
    shares: Sequence[SharedGroup] = ()
    if namespace.project_id is not None:
        ids = [namespace.project_id]
        shares = find_shared_groups(ids, today, session=session).get(namespace.project_id, ())
    # Later entries replace earlier entries: higher roles replace lower roles, and ancestor groups
    # replace groups with which the project is shared.
    for share in sorted(shares, key=lambda each: each.group_access_level):
        around = _MemberSource(share.group_full_path, share.role, share.expires_at, is_shared=True)
        found |= dict.fromkeys(
            _find_group_and_ancestor_paths(share.group_full_path, session=session), around
        )
    above = _find_group_and_ancestor_paths(namespace.path, session=session)
    return found | {group_id: _MemberSource(path) for group_id, path in above.items()}


def _find_group_and_ancestor_paths(path: str, *, session: Session) -> dict[int, str]:
    """Return the paths of a group and of its ancestor groups, by group ID."""
    keys = [fold_text(each) for each in (*list_ancestor_paths(path), path)]
    rows = session.execute(select(Group.id, Group.path).where(Group.path_key.in_(keys)))
    return dict(rows.all())


def _list_sharing_group_ids(groups: _MemberSources) -> list[int]:
    return [group_id for group_id, group in groups.items() if group.is_shared]


def _select_effective_role(groups: _MemberSources) -> SQLColumnExpression[int]:
    """Select the role that a membership gives in the namespace, limited by the role of a share."""
    lowered = [
        ((Member.group_id == group_id) & (Member.role > int(group.most)), int(group.most))
        for group_id, group in groups.items()
        if group.is_shared
    ]
    return case(*lowered, else_=Member.role) if lowered else Member.role


def _is_membership_in(namespace: Namespace, groups: Iterable[int]) -> ColumnElement[bool]:
    """Return an SQL condition that matches memberships in a namespace or in the given groups."""
    inherited = Member.group_id.in_(groups)
    if namespace.project_id is None:
        return inherited
    return or_(inherited, Member.project_id == namespace.project_id)


def _select_users(
    namespace: Namespace, groups: _MemberSources, member_filter: MemberFilter, today: date
) -> Select[int, int]:
    """Select the IDs of matching users, each with the highest role."""
    inside = (
        is_direct_membership(namespace)
        if member_filter.is_direct
        else _is_membership_in(namespace, groups)
    )
    found = select(Member.user_id, func.max(_select_effective_role(groups)).label("role")).where(
        inside, is_membership_active(today)
    )
    if member_filter.user_ids:
        found = found.where(Member.user_id.in_(member_filter.user_ids))
    if member_filter.without:
        found = found.where(Member.user_id.not_in(member_filter.without))
    if member_filter.search:
        word = fold_text(member_filter.search.replace("\x00", "\ufffd"))
        matches = or_(*(column.contains(word, autoescape=True) for column in _SEARCH_COLUMNS))
        found = found.join(User, User.id == Member.user_id).where(matches)
    return found.group_by(Member.user_id)


def _build_member_views(
    namespace: Namespace,
    groups: _MemberSources,
    user_ids: Sequence[int],
    *,
    viewer_id: int | None,
    session: Session,
    today: date,
) -> tuple[MemberView, ...]:
    """Return the members with the given user IDs, in the same order."""
    rows = session.execute(
        select(Member, User, MemberRole)
        .join(User, User.id == Member.user_id)
        .outerjoin(MemberRole, is_custom_role_of_member())
        .where(
            Member.user_id.in_(user_ids),
            _is_membership_in(namespace, groups),
            is_membership_active(today),
        )
    )
    people: dict[int, tuple[User, list[_Membership]]] = {}
    for member, user, custom in rows:
        is_direct = member.group_id in (None, namespace.group_id)
        each = _build_membership(member, custom, groups, is_direct=is_direct)
        people.setdefault(user.id, (user, []))[1].append(each)
    return tuple(
        _build_member_view(*people[each], viewer_id) for each in user_ids if each in people
    )


class _Membership(NamedTuple):
    member: Member
    role: Role
    expires_at: date | None
    #: Path of the group from which the membership is inherited. None if the membership is direct.
    through: str | None
    custom: MemberRole | None

    @property
    def abilities(self) -> Sequence[str]:
        """Names of the abilities that the custom role adds."""
        return self.custom.abilities if self.custom else ()


def _build_membership(
    member: Member, custom: MemberRole | None, groups: _MemberSources, *, is_direct: bool = False
) -> _Membership:
    """Return a membership with the role that it gives in the namespace, and its expiry date."""
    group = _DIRECT_SOURCE if member.group_id is None else groups[member.group_id]
    days = [day for day in (member.expires_at, group.until) if day is not None]
    return _Membership(
        member,
        role=Role(min(member.role, group.most)),
        expires_at=min(days, default=None),
        through=None if is_direct else group.path,
        custom=None if group.is_shared else custom,
    )


def _build_member_view(user: User, roles: list[_Membership], viewer_id: int | None) -> MemberView:
    # Of two equal roles, prefer the direct role, since it can be changed in the namespace.
    # Otherwise, prefer the role that expires last.
    highest = max(
        roles,
        key=lambda each: (each.role, each.through is None, each.expires_at or date.max),
    )
    direct = next((each for each in roles if each.through is None), None)
    own = direct.member if direct else None
    return MemberView(
        id=own.id if own else None,
        user_id=user.id,
        username=user.username,
        name=user.name,
        role=highest.role,
        custom_role=_build_assigned_role(highest.custom),
        own_custom_role=_build_assigned_role(direct.custom) if direct else None,
        abilities=parse_abilities(name for each in roles for name in each.abilities),
        own_role=Role(own.role) if own else None,
        inherited_from=highest.through,
        is_you=user.id == viewer_id,
        expires_at=highest.expires_at,
        own_expires_at=own.expires_at if own else None,
        created_at=highest.member.created_at,
        state=user.state,
        kind=user.kind,
    )


def _build_assigned_role(custom: MemberRole | None) -> AssignedMemberRole | None:
    return AssignedMemberRole(id=custom.id, name=custom.name) if custom else None
