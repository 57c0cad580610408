"""Roles that depend on groups at an identity provider."""

from sqlalchemy import ScalarSelect, delete, select, update

from domain.access.roles import Role
from models import Group, Identity, Member, User
from tests.support.accounts.people import Person, database_of, make_project, make_user, now
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.openid_provider import FakeProvider


def new_group(gatebell: LiveGatebell) -> str:
    """Return the path of a new group with an owner."""
    return make_project(gatebell, make_user(gatebell)).partition("/")[0]


def person_of(provider: FakeProvider) -> Person:
    """Return the user of the provider, with the name of the created account."""
    name = provider.person["preferred_username"]
    return Person(username=name, email=provider.person["email"], password="")


def role_of(gatebell: LiveGatebell, provider: FakeProvider, group: str) -> Role | None:
    """Return the role of the provider's current user in a group."""
    mine = select(Identity.user_id).where(Identity.subject == provider.person["sub"])
    return _role(gatebell, mine.scalar_subquery(), group)


def role_in(gatebell: LiveGatebell, username: str, group: str) -> Role | None:
    """Return the role of a user in a group."""
    mine = select(User.id).where(User.username == username)
    return _role(gatebell, mine.scalar_subquery(), group)


def _role(gatebell: LiveGatebell, user_id: ScalarSelect[int], group: str) -> Role | None:
    statement = (
        select(Member.role)
        .join(Group, Group.id == Member.group_id)
        .where(Group.path == group, Member.user_id == user_id)
    )
    with database_of(gatebell) as session:
        role = session.scalar(statement)
    return None if role is None else Role(role)


def set_role(gatebell: LiveGatebell, username: str, group: str, role: Role | None) -> None:
    """Set the role of a user in a group, or remove the user, as an owner would."""
    with database_of(gatebell) as session:
        user_id = session.scalars(select(User.id).where(User.username == username)).one()
        group_id = session.scalars(select(Group.id).where(Group.path == group)).one()
        mine = (Member.user_id == user_id) & (Member.group_id == group_id)
        if role is None:
            session.execute(delete(Member).where(mine))
        elif not session.execute(update(Member).where(mine).values(role=int(role))).rowcount:  # type: ignore[attr-defined]
            session.add(
                Member(user_id=user_id, group_id=group_id, role=int(role), created_at=now())
            )
