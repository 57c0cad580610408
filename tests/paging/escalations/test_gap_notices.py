"""Tests of notices about new gaps in policies and schedules, each sent once."""

from datetime import timedelta

import pytest
from sqlalchemy import delete, update

from domain.access.roles import Role
from domain.paging.on_call.actions import create_schedule
from domain.paging.on_call.types import NewRotation, NewSchedule
from models import Mail, Member, OnCallRotation, OnCallTurn, Project, User
from tests.support.notifications.escalations import Escalated
from web.jobs.mail import queue_paging_gap_mail


@pytest.fixture
def maria(shop: Escalated) -> None:
    """Create a maintainer."""
    shop.person("maria", role=Role.MAINTAINER)


def check_gaps(shop: Escalated) -> list[tuple[str, str, str]]:
    """Run the check for gaps, and return the messages that it wrote."""
    shop.now += timedelta(minutes=10)
    before = len(shop.rows(Mail))
    queue_paging_gap_mail(shop.settings, clock=lambda: shop.now)
    new: list[Mail] = shop.rows(Mail)[before:]
    return [(each.recipient.partition("@")[0], each.subject, each.text) for each in new]


def leave(shop: Escalated, user_id: int) -> None:
    with shop.session() as session:
        session.execute(delete(Member).where(Member.user_id == user_id))


@pytest.mark.long
@pytest.mark.usefixtures("maria")
def test_a_member_who_leaves_and_the_maintainers_are_notified(shop: Escalated) -> None:
    shop.schedule("Primary", shop.alice, shop.bob)
    shop.policy("0s schedule:Primary", "5m user:bob", name="Night")
    assert check_gaps(shop) == []
    assert check_gaps(shop) == []
    leave(shop, shop.bob.id)
    to_maria, to_bob = check_gaps(shop)
    assert to_maria[:2] == ("maria", "Alerts may reach nobody: acme/shop")
    assert "- @bob has no access to the alerts of the project, but the policy Night" in to_maria[2]
    assert "- @bob can no longer be on call in Primary. Their shifts are skipped." in to_maria[2]
    assert "- Nobody is on call in Primary from 2026-03-02 " in to_maria[2]
    assert "http://localhost/acme/shop/-/on_call\n" in to_maria[2]
    assert to_bob[:2] == ("bob", "You are no longer paged: acme/shop")
    # No notice is repeated, although hours pass and the gaps move with them.
    shop.now += timedelta(days=9)
    assert check_gaps(shop) == []
    # A user who returns and leaves again is a new gap.
    with shop.session() as session:
        row = Member(user_id=shop.bob.id, project_id=shop.project_id, role=30, created_at=shop.now)
        session.add(row)
    assert check_gaps(shop) == []
    with shop.session() as session:
        session.execute(update(User).where(User.id == shop.bob.id).values(state="blocked"))
    (to_maria,) = check_gaps(shop)
    assert "- @bob is not active, but the policy Night pages them." in to_maria[2]


@pytest.mark.usefixtures("maria")
def test_a_removed_layer_is_reported_even_if_there_were_gaps_before(shop: Escalated) -> None:
    daily = NewRotation(type="daily", users=("alice",), starts_on=shop.now.date())
    new = NewSchedule(name="Primary", time_zone="UTC", rotations=(daily,))
    with shop.session() as session:
        made = create_schedule(shop.work(session), shop.project_view(session), new)
    shop.policy("0s schedule:Primary")
    assert check_gaps(shop) == []
    with shop.session() as session:
        session.execute(delete(OnCallTurn))
        session.execute(delete(OnCallRotation).where(OnCallRotation.schedule_id == made.id))
    ((who, _, text),) = check_gaps(shop)
    assert who == "maria"
    assert "- Nobody is on call in Primary from 2026-03-01 20:20 UTC until 2026-03-15" in text
    assert check_gaps(shop) == []


@pytest.mark.usefixtures("maria")
def test_recurring_and_initial_gaps_are_not_reported(
    shop: Escalated,
) -> None:
    leave(shop, shop.bob.id)
    shop.schedule("Empty")
    with shop.session() as session:
        # A policy can name an unreachable user when it is created.
        session.add(
            Member(user_id=shop.bob.id, project_id=shop.project_id, role=30, created_at=shop.now)
        )
    shop.policy("0s schedule:Empty", "5m user:bob")
    leave(shop, shop.bob.id)
    for _ in range(5):
        assert check_gaps(shop) == []
        shop.now += timedelta(days=1)


@pytest.mark.usefixtures("maria")
def test_one_change_in_many_projects_is_one_message_per_user(shop: Escalated) -> None:
    shop.policy("0s user:bob")
    maria = next(each.id for each in shop.rows(User) if each.username == "maria")
    main = shop.project_id
    for path in ("acme/api", "acme/web"):
        shop.project_id = shop.project(path)
        with shop.session() as session:
            session.add_all(
                Member(user_id=user_id, project_id=shop.project_id, role=role, created_at=shop.now)
                for user_id, role in ((shop.bob.id, 30), (maria, 40))
            )
        shop.policy("0s user:bob")
    shop.project_id = main
    assert check_gaps(shop) == []
    leave(shop, shop.bob.id)
    to_maria, to_bob = check_gaps(shop)
    assert to_maria[1] == "Alerts may reach nobody: acme/shop and 2 more"
    assert to_bob[1] == "You are no longer paged: acme/shop and 2 more"
    assert "- acme/web\n" in to_bob[2]


@pytest.mark.usefixtures("maria")
def test_an_archived_project_is_checked_after_it_is_unarchived(shop: Escalated) -> None:
    shop.policy("0s user:bob")
    assert check_gaps(shop) == []
    archive = update(Project).where(Project.id == shop.project_id)
    with shop.session() as session:
        session.execute(archive.values(archived_at=shop.now))
    leave(shop, shop.bob.id)
    assert check_gaps(shop) == []
    with shop.session() as session:
        session.execute(archive.values(archived_at=None))
    assert [each[0] for each in check_gaps(shop)] == ["maria", "bob"]
