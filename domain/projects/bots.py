"""Bots: the accounts behind the access tokens of projects and groups.

Each of these access tokens has its own bot, which remains when the token is rotated. A bot is a
member of the project or group, with the role of the token.
"""

from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import exists, false, select
from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.accounts.machine_accounts import create_machine_account
from domain.accounts.users import BOT, IS_ACTIVE_HUMAN
from domain.audit.events import NamespaceIds
from domain.core.database.bulk_statements import build_bulk_delete
from domain.core.types.base import get_column_values
from domain.projects.paths import list_ancestor_paths
from domain.projects.views import Namespace
from domain.projects.visibility_sql import is_membership_active
from models import Bot, Group, Member, PersonalAccessToken, Project, User


def create_bot(
    namespace: Namespace, name: str, role: Role, *, session: Session, now: datetime
) -> User:
    """Create a bot and make it a member of a group or project."""
    prefix = f"{namespace.resource_type}_{namespace.id}_bot"
    user = create_machine_account(prefix, name, BOT, session=session, now=now)
    here = {"group_id": namespace.group_id, "project_id": namespace.project_id}
    session.add(Bot(user_id=user.id, **here))
    session.add(Member(user_id=user.id, role=int(role), created_at=now, **here))
    return user


def find_bot_namespace(user_id: int, *, session: Session) -> NamespaceIds | None:
    """Return the project or group of a bot, or None if the account does not belong to a bot."""
    found = session.execute(
        select(Bot.project_id, Bot.group_id).where(Bot.user_id == user_id)
    ).first()
    return NamespaceIds(project_id=found.project_id, group_id=found.group_id) if found else None


def remove_idle_bot_membership(user_id: int, *, session: Session, now: datetime) -> None:
    """Remove the membership of a bot that has no valid token.

    Do nothing for other users.
    """
    is_bot = exists().where(Bot.user_id == user_id)
    has_token = exists().where(
        PersonalAccessToken.user_id == user_id,
        PersonalAccessToken.revoked_at.is_(None),
        PersonalAccessToken.expires_at > now,
    )
    session.execute(build_bulk_delete(Member).where(Member.user_id == user_id, is_bot, ~has_token))


def find_bot_roles(user_ids: list[int], *, session: Session) -> dict[int, Role]:
    """Return the roles of bots by user ID, excluding bots that are no longer members."""
    rows = session.execute(
        select(Member.user_id, Member.role)
        .join(Bot, Bot.user_id == Member.user_id)
        .where(Member.user_id.in_(user_ids))
    )
    return {user_id: Role(role) for user_id, role in rows}


@dataclass(frozen=True, kw_only=True)
class Maintainer:
    """A person who may manage the access tokens of a project or group."""

    id: int
    name: str
    email: str
    time_zone: str = "UTC"


def find_maintainers(
    group_id: int | None, project_id: int | None, *, session: Session, today: date
) -> tuple[str, tuple[Maintainer, ...]]:
    """Return a namespace's path, and the people who may manage its access tokens.

    The roles of these people can be direct or inherited.
    """
    table = Group if group_id is not None else Project
    path = session.scalar(select(table.path).where(table.id == (group_id or project_id))) or ""
    least = Role.OWNER if group_id is not None else Role.MAINTAINER
    # A comparison with None would match the members of every group.
    is_here = false() if project_id is None else Member.project_id == project_id
    people = session.execute(
        select(User.id, User.name, User.email, User.time_zone)
        .distinct()
        .join(Member, Member.user_id == User.id)
        .outerjoin(Group, Group.id == Member.group_id)
        .where(
            Group.path.in_((*list_ancestor_paths(path), path)) | is_here,
            Member.role >= int(least),
            is_membership_active(today),
            IS_ACTIVE_HUMAN,
        )
        .order_by(User.id)
    )
    return path, tuple(Maintainer(**get_column_values(row, Maintainer)) for row in people)
