"""Lists of members load a single page, even if there are many members."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session

from domain.access.roles import Ability, Role
from domain.core.database.pagination import PageRequest
from domain.projects.member_lists import (
    MemberFilter,
    find_effective_member,
    list_members,
    list_usernames_with_ability,
)
from domain.projects.views import MemberView, Namespace
from models import Group, Member, Project, User

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
TODAY = NOW.date()
MANY = 120


@pytest.fixture
def session(in_memory: Session) -> Session:
    """A group with many members, and a project in it with one more."""
    opened = in_memory
    opened.add_all(
        [
            Group(id=1, name="acme", path="acme", created_at=NOW),
            Project(id=1, group_id=1, name="shop", path="acme/shop", created_at=NOW),
            *(user(number) for number in range(1, MANY + 2)),
        ]
    )
    opened.flush()
    for number in range(1, MANY + 1):
        role = Role.OWNER if number == MANY else Role.REPORTER
        opened.add(Member(user_id=number, group_id=1, role=int(role), created_at=NOW))
    for number in (7, MANY + 1):
        opened.add(Member(user_id=number, project_id=1, role=int(Role.DEVELOPER), created_at=NOW))
    opened.commit()
    opened.expunge_all()
    return opened


def user(number: int) -> User:
    return User(
        id=number,
        username=f"user{number:03}",
        email=f"user{number}@example.org",
        name=f"Person {number}",
        password_hash="",
        created_at=NOW,
    )


GROUP, PROJECT = Namespace(group_id=1, path="acme"), Namespace(project_id=1, path="acme/shop")


def part_of(
    session: Session, namespace: Namespace, wanted: MemberFilter, part: PageRequest
) -> tuple[tuple[MemberView, ...], int | None]:
    found = list_members(namespace, wanted, part, viewer_id=None, session=session, today=TODAY)
    return found.items, found.total


@contextmanager
def loaded(session: Session) -> Iterator[list[Any]]:
    """Collect all rows that are loaded as objects."""
    found: list[Any] = []

    def note(_session: Session, row: Any) -> None:
        found.append(row)

    event.listen(session, "loaded_as_persistent", note)
    yield found
    event.remove(session, "loaded_as_persistent", note)


@pytest.mark.long
@pytest.mark.parametrize("order_by", ["id", "role"])
def test_a_page_loads_only_its_own_members(session: Session, order_by: str) -> None:
    part = PageRequest(size=10, offset=20, order_by=order_by)
    with loaded(session) as rows:
        items, total = part_of(session, GROUP, MemberFilter(), part)
    assert (len(items), total) == (10, MANY)
    assert sum(isinstance(row, Member) for row in rows) == 10
    assert sum(isinstance(row, User) for row in rows) == 10


def test_one_member_is_found_without_the_others(session: Session) -> None:
    with loaded(session) as rows:
        found = find_effective_member(PROJECT, 7, session=session, today=TODAY)
    assert found is not None
    assert (found.role, found.own_role) == (Role.DEVELOPER, Role.DEVELOPER)
    assert sum(isinstance(row, Member) for row in rows) == 2
    assert find_effective_member(PROJECT, MANY + 2, session=session, today=TODAY) is None
    assert find_effective_member(PROJECT, 2**80, session=session, today=TODAY) is None


@pytest.mark.long
def test_members_are_ordered_by_id_or_role(session: Session) -> None:
    by_id, _ = part_of(session, GROUP, MemberFilter(), PageRequest(size=2))
    assert [each.user_id for each in by_id] == [1, 2]
    by_role, _ = part_of(session, PROJECT, MemberFilter(), PageRequest(size=3, order_by="role"))
    assert [each.username for each in by_role] == ["user120", "user007", "user121"]
    last, _ = part_of(session, GROUP, MemberFilter(), PageRequest(size=10, offset=MANY - 1))
    assert [each.user_id for each in last] == [MANY]


@pytest.mark.long
def test_a_project_has_its_own_members_and_members_of_its_group(session: Session) -> None:
    part = PageRequest(size=1)
    assert part_of(session, PROJECT, MemberFilter(), part)[1] == MANY + 1
    assert part_of(session, PROJECT, MemberFilter(is_direct=True), part)[1] == 2
    found = part_of(session, PROJECT, MemberFilter(search="PERSON 12"), PageRequest(size=5))
    assert [each.user_id for each in found[0]] == [12, 120, 121]
    only = MemberFilter(user_ids=(3, 121), search="user")
    assert [each.user_id for each in part_of(session, PROJECT, only, part)[0]] == [3]
    assert part_of(session, PROJECT, MemberFilter(search="%"), part)[1] == 0
    assert part_of(session, PROJECT, MemberFilter(search="\x00"), part)[1] == 0


@pytest.mark.long
def test_users_with_an_ability_are_counted_up_to_a_limit(session: Session) -> None:
    able = list_usernames_with_ability(
        Ability.ADMIN_ALERTS, PROJECT, limit=10, session=session, today=TODAY
    )
    assert able == ["user007", "user120", "user121"]
    first = list_usernames_with_ability(
        Ability.ADMIN_ALERTS, PROJECT, limit=2, session=session, today=TODAY
    )
    assert first == ["user007", "user120"]
