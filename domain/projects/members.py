"""Adds, lists and removes members."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from domain.accounts.roles import Role
from domain.accounts.users import BOT, find_user, get_user
from domain.audit.events import Event, EventKind
from domain.errors import ForbiddenError, InvalidError, NotFoundError
from domain.projects.paths import ancestors
from domain.projects.views import MemberView
from domain.upsert import insert_into
from models import Bot, Group, Member, Project, User


@dataclass(frozen=True, kw_only=True)
class Place:
    """A group or a project: where one may be a member."""

    group_id: int | None = None
    project_id: int | None = None
    path: str


def get_place(path: str, *, session: Session) -> Place:
    """Return the group or project of a full path, or raise NotFoundError."""
    wanted = path.strip("/").lower()
    group = session.scalar(select(Group).where(func.lower(Group.path) == wanted))
    if group is not None:
        return Place(group_id=group.id, path=group.path)
    project = session.scalar(select(Project).where(func.lower(Project.path) == wanted))
    if project is not None:
        return Place(project_id=project.id, path=project.path)
    message = f"There is no group or project “{path}”."
    raise NotFoundError(message)


def add_member(place: Place, login: str, role: Role, *, session: Session, now: datetime) -> User:
    """Give a user a role in a place, or change the role that they have there."""
    user = get_user(login, session=session)
    columns = ["user_id", "group_id" if place.group_id is not None else "project_id"]
    insert = insert_into(Member, session=session).values(
        user_id=user.id,
        group_id=place.group_id,
        project_id=place.project_id,
        role=int(role),
        created_at=now,
    )
    session.execute(insert.on_conflict_do_update(index_elements=columns, set_={"role": int(role)}))
    return user


@dataclass(frozen=True, kw_only=True)
class Gift:
    """A role for a user, and the role of who gives it."""

    login: str
    role: Role
    giver: Role


def grant_role(place: Place, gift: Gift, *, session: Session, now: datetime) -> User:
    """Add a member on behalf of another, who cannot give more than they have."""
    user = find_user(gift.login, session=session)
    if user is not None and user.kind == BOT:
        message = "A bot belongs to its access token: make a token here instead."
        raise InvalidError(message, field="user")
    if gift.role > gift.giver:
        message = f"You cannot give the role {gift.role.label}: your own is {gift.giver.label}."
        raise InvalidError(message, field="role")
    return add_member(place, gift.login, gift.role, session=session, now=now)


def remove_member(place: Place, member_id: int, *, giver: Role, session: Session) -> User:
    """Take a member out of a place and return who it was; the last owner of a group stays."""
    here = (
        (Member.group_id == place.group_id)
        if place.group_id
        else (Member.project_id == place.project_id)
    )
    member = session.scalar(select(Member).where(Member.id == member_id, here))
    if member is None:
        message = "That member is not here any more."
        raise NotFoundError(message)
    if member.role > giver:
        message = "You cannot remove somebody whose role is above yours."
        raise ForbiddenError(message)
    if session.scalar(select(Bot.id).where(Bot.user_id == member.user_id)) is not None:
        message = "This is the bot of an access token: revoke the token instead."
        raise InvalidError(message, field="member")
    owners = session.scalar(
        select(func.count())
        .select_from(Member)
        .join(User, User.id == Member.user_id)
        .where(here, Member.role == int(Role.OWNER), User.kind != BOT)
    )
    if place.group_id and member.role == Role.OWNER and owners == 1:
        message = "A group needs an owner: give the role to somebody else first."
        raise InvalidError(message, field="member")
    session.execute(delete(Member).where(Member.id == member.id))
    return session.get_one(User, member.user_id)


def joined(place: Place, user: User, role: Role) -> Event:
    """Return the event that a user has a role in a place from now on."""
    details = {"username": user.username, "role": role.label}
    return Event(kind=EventKind.MEMBER_ADDED, user_id=user.id, subject=place.path, details=details)


def left(place: Place, user: User) -> Event:
    """Return the event that a user has no role of their own in a place any more."""
    return Event(
        kind=EventKind.MEMBER_REMOVED,
        user_id=user.id,
        subject=place.path,
        details={"username": user.username},
    )


def list_members(
    place: Place, *, viewer_id: int | None, session: Session
) -> tuple[MemberView, ...]:
    """Return everybody who has a role here, also through a group above; each once."""
    above = (*ancestors(place.path), place.path)
    rows = session.execute(
        select(Member, User, Group.path)
        .join(User, User.id == Member.user_id)
        .outerjoin(Group, Group.id == Member.group_id)
        .where(
            Group.path.in_(above)
            | ((Member.project_id == place.project_id) & Member.project_id.is_not(None))
        )
    )
    best: dict[int, MemberView] = {}
    for member, user, group_path in rows:
        view = MemberView(
            id=member.id,
            username=user.username,
            name=user.name,
            role=Role(member.role),
            inherited_from=group_path if group_path not in (None, place.path) else None,
            is_you=user.id == viewer_id,
            is_bot=user.kind == BOT,
        )
        known = best.get(user.id)
        if known is None or (view.role, known.inherited_from is not None) > (known.role, False):
            best[user.id] = view
    return tuple(sorted(best.values(), key=lambda view: (-view.role, view.username)))
