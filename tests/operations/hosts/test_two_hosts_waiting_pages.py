"""Tests that waiting pages of two hosts are checked again before they are sent.

Pages wait for a retry, for a notification rule, or for the end of quiet hours. Meanwhile users lose
their access, and projects are silenced, archived and transferred. The test counts sent and
canceled messages.
"""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.alerts.matching.matcher_parser import parse_matchers
from domain.paging.notifications.contact_types.mail import parse_email_address
from domain.paging.notifications.contacts import ContactOwner
from domain.paging.notifications.page_queue import NewPage
from domain.paging.notifications.recipients import PagingPreferences, QuietHours, store_preferences
from domain.paging.silences.actions import create_silence, expire_silence
from domain.paging.silences.types import NewSilence
from domain.projects.namespace_changes import archive_project_row, create_group, unarchive_project
from domain.projects.transfers import transfer_project
from models import AlertNote, Contact, Group, Member, Page, PageMessage, User
from tests.operations.hosts.test_two_hosts import Pair, waited_for
from tests.operations.hosts.test_two_hosts import pair as pair  # noqa: PLC0414 - the fixture
from tests.paging.notifications.test_rules import rule as contact_rule
from tests.support.accounts.people import database_of
from tests.support.database.work import project_in, work_in
from tests.support.notifications.escalations import Escalated
from tests.support.notifications.paging import Person
from web.settings.environment import parse_settings

pytestmark = pytest.mark.long

WAITS = ("retry", "rule", "quiet")


class World:
    """Represents a project for each event, with a user for each reason to wait."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.shop = Escalated(parse_settings(pair.one.environment))
        self.shop.now = datetime.now(UTC)
        self.projects: dict[str, int] = {}
        self.alerts: dict[str, int] = {}

    def prepare(self, what: str) -> None:
        """Create a project with an alert, and page all users."""
        shop = self.shop
        project_id = self.projects[what] = shop.project(f"acme/{what}")
        alert_id = self.alerts[what] = shop.alert(
            f"Alert of {what}", project_id=project_id, severity=1
        )
        for wait in WAITS:
            person = self._member(f"{wait}-{what}", project_id)
            self._let_wait(wait, person)
            page = NewPage(
                key=f"{wait} {what}", project_id=project_id, alert_id=alert_id, user_id=person.id
            )
            shop.queue([page])

    def _member(self, name: str, project_id: int) -> Person:
        person = self.shop.person(name, role=None)
        with self.shop.session() as session:
            member = Member(
                user_id=person.id,
                project_id=project_id,
                role=int(Role.DEVELOPER),
                created_at=self.shop.now,
            )
            session.add(member)
        return person

    def _let_wait(self, wait: str, person: Person) -> None:
        shop = self.shop
        assert person.contact is not None
        if wait == "rule":
            contact_rule(shop, person.contact)
            later = shop.email_contact(person.id, f"{person.username}@later.example")
            contact_rule(shop, later, delay=1)
        if wait == "quiet":
            ends = shop.now + timedelta(minutes=2)
            quiet = QuietHours(
                time_zone="UTC",
                starts=(shop.now.hour * 60 + shop.now.minute - 60) % 1440,
                ends=ends.hour * 60 + ends.minute,
            )
            with shop.session() as session:
                preferences = PagingPreferences(quiet_hours=quiet)
                store_preferences(person.id, preferences, session=session, now=shop.now)

    def are_waiting(self) -> bool:
        """Return whether all messages wait for a retry, a later contact, or quiet hours."""
        with self.shop.session() as session:
            tried = session.scalar(
                select(func.count(PageMessage.contact_id.distinct())).where(
                    PageMessage.tries > 0, PageMessage.ended_at.is_(None)
                )
            )
        count = len(self.projects)
        told = [each for each in self.received() if each.startswith("rule-")]
        # Pages that were rejected once also go to the account's address, and one goes to a channel.
        return (tried or 0) >= 2 * count + 1 and len(told) == count

    def received(self) -> list[str]:
        """Return the addresses that received messages."""
        some = [each[0] for each in self.pair.mailbox.recipients]
        return [each for each in some if each.partition("-")[0] in {*WAITS, "room"}]

    def unsent(self) -> int:
        with self.shop.session() as session:
            waiting = select(func.count()).where(PageMessage.ended_at.is_(None))
            return session.scalar(waiting) or 0


def _change(pair: Pair, act: Callable[[Session], None]) -> None:
    """Change the database, as the other host does."""
    with database_of(pair.other) as session:
        act(session)


def test_waiting_pages_on_two_hosts_are_cancelled_and_counted(pair: Pair) -> None:
    world = World(pair)
    shop = world.shop
    pair.mailbox.refused = "retry-"
    forbidden = ("removed", "guest", "blocked", "silenced", "archived")
    for what in (*forbidden, "kept", "transferred"):
        world.prepare(what)
    with shop.session() as session:
        create_group("elsewhere", reserved=frozenset(), session=session, now=shop.now)
        group_id = session.scalars(select(Group.id).where(Group.path == "acme")).one()
    room = shop.contact(
        ContactOwner(group_id=group_id), parse_email_address("retry-room@chat.example")
    )
    page = NewPage(
        key="room",
        channel_id=room.id,
        project_id=world.projects["transferred"],
        alert_id=world.alerts["transferred"],
    )
    shop.queue([page])
    assert waited_for(world.are_waiting)

    silence_id = 0

    def forbid(session: Session) -> None:
        nonlocal silence_id
        now = datetime.now(UTC)
        of_removed = Member.project_id == world.projects["removed"]
        session.execute(delete(Member).where(of_removed))
        of_guests = Member.project_id == world.projects["guest"]
        session.execute(update(Member).where(of_guests).values(role=int(Role.GUEST)))
        session.execute(update(User).where(User.username.like("%-blocked")).values(state="locked"))
        archive_project_row(world.projects["archived"], session=session, now=now)
        transfer_project(world.projects["transferred"], "elsewhere", session=session, now=now)
        new = NewSilence(
            matchers=parse_matchers('title=~".+"'), starts_at=now, ends_at=now + timedelta(hours=1)
        )
        project = project_in(session, world.projects["silenced"])
        silence_id = create_silence(work_in(session, now=now), project, new).id

    _change(pair, forbid)
    before = Counter(world.received())
    pair.mailbox.refused = ""
    kept = {
        f"{wait}-{what}@{place}.example"
        for what in ("kept", "transferred")
        for wait, place in (("retry", "pager"), ("rule", "later"), ("quiet", "pager"))
    }
    # Quiet hours end after two minutes, and retries of a failing mail server have pauses.
    waited_for(lambda: kept <= set(world.received()))
    waited_for(lambda: kept <= set(world.received()))
    assert waited_for(lambda: kept <= set(world.received())), kept - set(world.received())
    assert waited_for(lambda: not world.unsent())
    sent = Counter(world.received()) - before
    # Users whose contact rejected the message also get it at their account's address.
    may_be = kept | {f"retry-{what}@accounts.example" for what in ("kept", "transferred")}
    assert set(sent) <= may_be
    assert max(sent.values()) == 1
    canceled = _cancelled(world)
    assert canceled == {
        **{f"retry-{what}": 2 for what in forbidden},
        **{f"rule-{what}": 1 for what in forbidden},
        "room": 1,
    }
    assert _explained(world) == {*forbidden, "transferred"}

    def allow(session: Session) -> None:
        unarchive_project(world.projects["archived"], session=session)
        project = project_in(session, world.projects["silenced"])
        expire_silence(work_in(session, now=datetime.now(UTC)), project, silence_id)

    before = Counter(world.received())
    _change(pair, allow)
    again = {f"{wait}-{what}@pager.example" for what in ("silenced", "archived") for wait in WAITS}
    assert waited_for(lambda: again <= set(Counter(world.received()) - before))
    shop.close()


def _cancelled(world: World) -> dict[str, int]:
    """Count canceled messages by user or channel."""
    with world.shop.session() as session:
        names = session.scalars(
            select(func.coalesce(User.username, "room"))
            .select_from(PageMessage)
            .join(Contact, Contact.id == PageMessage.contact_id)
            .outerjoin(User, User.id == Contact.user_id)
            .where(PageMessage.outcome == "withdrawn", PageMessage.cancelled_because.is_not(None))
        )
        return Counter(names)


def _explained(world: World) -> set[str]:
    """Return the projects whose alerts explain the unsent pages."""
    with world.shop.session() as session:
        noted = set(session.scalars(select(AlertNote.alert_id).where(AlertNote.kind == "page")))
        withheld = session.scalars(
            select(Page.alert_id).where(Page.withdrawn_at.is_not(None) | Page.held_by.is_not(None))
        )
        assert set(withheld) <= noted
    return {what for what, alert in world.alerts.items() if alert in noted and what != "kept"}
