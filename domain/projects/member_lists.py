"""Lists members of groups and projects page by page: a group may have 100,000 members."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, SQLColumnExpression, case, func, or_, select
from sqlalchemy.orm import Session

from domain.access.roles import LEAST_ROLES, Ability, Role, known_abilities
from domain.accounts.users import IN_USE
from domain.core.database.paging import LARGEST_ID, Listed, ListPart, fetch_part
from domain.core.errors import NotFoundError
from domain.projects.listing import shared_groups
from domain.projects.member_roles import is_custom_role_of_member
from domain.projects.members import is_here
from domain.projects.paths import ancestors
from domain.projects.views import GivenMemberRole, MemberView, Namespace, SharedGroup
from domain.projects.visibility_sql import is_in_force
from models import Group, Member, MemberRole, User
from models.folding import fold, searchable

_NAMES = (searchable(User.username, User.username_key), searchable(User.name, User.name_key))


@dataclass(frozen=True, kw_only=True)
class MemberFilter:
    """The filter of a member list."""

    #: Text to search for in names and user names.
    search: str = ""
    user_ids: Sequence[int] = ()
    without: Sequence[int] = ()
    #: True if only direct members are listed.
    is_direct: bool = False


def list_members(
    namespace: Namespace,
    wanted: MemberFilter,
    part: ListPart,
    *,
    viewer_id: int | None,
    session: Session,
    today: date,
) -> Listed[MemberView]:
    """Return a page of the direct and inherited members, each of them once.

    The order `role` lists the highest role first, then sorts by user name. Each member has the
    highest role. A lower direct role is returned as well, because it remains if the inherited role
    ends.
    """
    groups = _groups_around(namespace, session=session, today=today)
    found = _users(namespace, groups, wanted, today).subquery()
    if part.order_by == "role":
        highest = (
            select(found.c.user_id, found.c.role, User.username)
            .join(User, User.id == found.c.user_id)
            .subquery()
        )
        orders = {"id": highest.c.username, "role": -highest.c.role}
        statement = select(highest.c.user_id)
    else:
        orders, statement = {"id": found.c.user_id}, select(found.c.user_id)
    page = fetch_part(statement, orders, part, session=session)
    views = _views(
        namespace,
        groups,
        [row[0] for row in page.items],
        viewer_id=viewer_id,
        session=session,
        today=today,
    )
    return Listed(items=views, total=page.total, next_cursor=page.next_cursor)


def find_member_of_all(
    namespace: Namespace,
    user_id: int,
    *,
    session: Session,
    today: date,
    viewer_id: int | None = None,
) -> MemberView | None:
    """Return a direct or inherited member."""
    if user_id > LARGEST_ID:
        return None
    groups = _groups_around(namespace, session=session, today=today)
    views = _views(namespace, groups, [user_id], viewer_id=viewer_id, session=session, today=today)
    return views[0] if views else None


def get_direct_member(
    namespace: Namespace,
    member_id: int,
    *,
    viewer_id: int | None,
    session: Session,
    today: date,
) -> MemberView:
    """Return the member with a direct membership of this id.

    Raise NotFoundError if there is none.
    """
    here = select(Member.user_id).where(Member.id == member_id, is_here(namespace))
    user_id = session.scalar(here) if member_id <= LARGEST_ID else None
    found = user_id and find_member_of_all(
        namespace, user_id, session=session, today=today, viewer_id=viewer_id
    )
    if not found or found.id != member_id:
        raise NotFoundError("Member not found.")
    return found


def users_with(
    ability: Ability, namespace: Namespace, *, limit: int, session: Session, today: date
) -> Sequence[str]:
    """Return up to `limit` user names of members with an ability here, sorted."""
    able = _able_members(ability, namespace, session=session, today=today)
    some = able.distinct().order_by(Member.user_id).limit(limit)
    names = select(User.username).where(User.id.in_(some.subquery().select()))
    return sorted(session.scalars(names), key=str.lower)


def able_people(
    wanted: ColumnElement[bool],
    ability: Ability,
    namespace: Namespace,
    *,
    session: Session,
    today: date,
) -> Mapping[int, str]:
    """Return the user names, by id, of matching people who have an ability here.

    `wanted` is a condition on users that should match few of them. Locked accounts and bots are
    left out.
    """
    able = _able_members(ability, namespace, session=session, today=today)
    rows = session.execute(select(User.id, User.username).where(wanted, IN_USE, User.id.in_(able)))
    return {row.id: row.username for row in rows}


def _able_members(
    ability: Ability, namespace: Namespace, *, session: Session, today: date
) -> Select[int]:
    """Select the ids of users who have an ability here by their role or a custom role."""
    groups = _groups_around(namespace, session=session, today=today)
    members = (
        select(Member.user_id)
        .outerjoin(MemberRole, is_custom_role_of_member())
        .where(_is_around(namespace, groups), is_in_force(today))
    )
    has_role = _role_in(groups) >= int(LEAST_ROLES[ability])
    custom = [
        row.id
        for row in session.execute(select(MemberRole.id, MemberRole.abilities))
        if ability in known_abilities(row.abilities)
    ]
    by_custom = MemberRole.id.in_(custom) & or_(
        Member.group_id.is_(None), Member.group_id.not_in(_shared(groups))
    )
    return members.where(or_(has_role, by_custom) if custom else has_role)


def last_days_with(
    ability: Ability,
    namespace: Namespace,
    user_ids: Collection[int],
    *,
    session: Session,
    today: date,
) -> dict[int, date | None]:
    """Return which of these users have an ability here, with the day on which it ends.

    That is the first day without the ability, or None if it does not end.
    """
    groups = _groups_around(namespace, session=session, today=today)
    rows = session.execute(
        select(Member, MemberRole)
        .outerjoin(MemberRole, is_custom_role_of_member())
        .where(Member.user_id.in_(user_ids), _is_around(namespace, groups), is_in_force(today))
    )
    found: dict[int, date | None] = {}
    for member, custom in rows:
        each = _membership(member, custom, groups)
        if each.role >= LEAST_ROLES[ability] or ability in known_abilities(each.abilities):
            before = found.get(member.user_id, each.expires_at)
            found[member.user_id] = _later(before, each.expires_at)
    return found


def _later(one: date | None, other: date | None) -> date | None:
    return None if one is None or other is None else max(one, other)


class _GroupAround(NamedTuple):
    """A group whose members are members here: a group above, or one that shares the project."""

    path: str
    #: Maximum role of its members here, and the day on which it ends.
    most: Role = Role.OWNER
    until: date | None = None
    #: True if the group shares the project. Custom roles count only in groups above.
    is_shared: bool = False


_Around = Mapping[int, _GroupAround]
_ABOVE = _GroupAround("")


def _groups_around(namespace: Namespace, *, session: Session, today: date) -> _Around:
    """Return the groups whose members are members here, by id."""
    found: dict[int, _GroupAround] = {}
    shares: Sequence[SharedGroup] = ()
    if namespace.project_id is not None:
        ids = [namespace.project_id]
        shares = shared_groups(ids, today, session=session).get(namespace.project_id, ())
    # Later entries win: higher roles replace lower ones, and groups above replace shared ones.
    for share in sorted(shares, key=lambda each: each.group_access_level):
        around = _GroupAround(share.group_full_path, share.role, share.expires_at, is_shared=True)
        found |= dict.fromkeys(_up_from(share.group_full_path, session=session), around)
    above = _up_from(namespace.path, session=session)
    return found | {group_id: _GroupAround(path) for group_id, path in above.items()}


def _up_from(path: str, *, session: Session) -> dict[int, str]:
    """Return the paths of a group and of the groups above it, by id."""
    keys = [fold(each) for each in (*ancestors(path), path)]
    rows = session.execute(select(Group.id, Group.path).where(Group.path_key.in_(keys)))
    return dict(rows.all())


def _shared(groups: _Around) -> list[int]:
    return [group_id for group_id, group in groups.items() if group.is_shared]


def _role_in(groups: _Around) -> SQLColumnExpression[int]:
    """Return the role that a membership gives here."""
    lowered = [
        ((Member.group_id == group_id) & (Member.role > int(group.most)), int(group.most))
        for group_id, group in groups.items()
        if group.is_shared
    ]
    return case(*lowered, else_=Member.role) if lowered else Member.role


def _is_around(namespace: Namespace, groups: Iterable[int]) -> ColumnElement[bool]:
    """Return the condition for memberships here and in the surrounding groups."""
    inherited = Member.group_id.in_(groups)
    if namespace.project_id is None:
        return inherited
    return or_(inherited, Member.project_id == namespace.project_id)


def _users(
    namespace: Namespace, groups: _Around, wanted: MemberFilter, today: date
) -> Select[int, int]:
    """Select the ids of matching users, each with the highest role."""
    inside = is_here(namespace) if wanted.is_direct else _is_around(namespace, groups)
    found = select(Member.user_id, func.max(_role_in(groups)).label("role")).where(
        inside, is_in_force(today)
    )
    if wanted.user_ids:
        found = found.where(Member.user_id.in_(wanted.user_ids))
    if wanted.without:
        found = found.where(Member.user_id.not_in(wanted.without))
    if wanted.search:
        word = fold(wanted.search.replace("\x00", "\ufffd"))
        matches = or_(*(column.contains(word, autoescape=True) for column in _NAMES))
        found = found.join(User, User.id == Member.user_id).where(matches)
    return found.group_by(Member.user_id)


def _views(
    namespace: Namespace,
    groups: _Around,
    user_ids: Sequence[int],
    *,
    viewer_id: int | None,
    session: Session,
    today: date,
) -> tuple[MemberView, ...]:
    """Return these members in the given order."""
    rows = session.execute(
        select(Member, User, MemberRole)
        .join(User, User.id == Member.user_id)
        .outerjoin(MemberRole, is_custom_role_of_member())
        .where(Member.user_id.in_(user_ids), _is_around(namespace, groups), is_in_force(today))
    )
    people: dict[int, tuple[User, list[_Membership]]] = {}
    for member, user, custom in rows:
        is_direct = member.group_id in (None, namespace.group_id)
        each = _membership(member, custom, groups, is_direct=is_direct)
        people.setdefault(user.id, (user, []))[1].append(each)
    return tuple(_member_view(*people[each], viewer_id) for each in user_ids if each in people)


class _Membership(NamedTuple):
    member: Member
    role: Role
    expires_at: date | None
    #: Path of the group from which the membership is inherited.
    through: str | None
    custom: MemberRole | None

    @property
    def abilities(self) -> Sequence[str]:
        """Return the names of the abilities that the custom role adds."""
        return self.custom.abilities if self.custom else ()


def _membership(
    member: Member, custom: MemberRole | None, groups: _Around, *, is_direct: bool = False
) -> _Membership:
    """Return the role and expiry date that a membership gives here."""
    group = _ABOVE if member.group_id is None else groups[member.group_id]
    days = [day for day in (member.expires_at, group.until) if day is not None]
    return _Membership(
        member,
        role=Role(min(member.role, group.most)),
        expires_at=min(days, default=None),
        through=None if is_direct else group.path,
        custom=None if group.is_shared else custom,
    )


def _member_view(user: User, roles: list[_Membership], viewer_id: int | None) -> MemberView:
    # Among equal roles, prefer the direct one, because it can be changed here. After that, prefer
    # the role that lasts longest.
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
        custom_role=_given_role(highest.custom),
        own_custom_role=_given_role(direct.custom) if direct else None,
        abilities=known_abilities(name for each in roles for name in each.abilities),
        own_role=Role(own.role) if own else None,
        inherited_from=highest.through,
        is_you=user.id == viewer_id,
        expires_at=highest.expires_at,
        own_expires_at=own.expires_at if own else None,
        created_at=highest.member.created_at,
        state=user.state,
        kind=user.kind,
    )


def _given_role(custom: MemberRole | None) -> GivenMemberRole | None:
    return GivenMemberRole(id=custom.id, name=custom.name) if custom else None
