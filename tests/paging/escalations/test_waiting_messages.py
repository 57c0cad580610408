"""Tests that waiting messages are checked before each attempt: access, project and silences."""

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from sqlalchemy import delete, func, select, update

from domain.access.roles import Role
from domain.housekeeping.clock_corrections import correct_future_times, count_future_times
from domain.paging.maintenance_windows.actions import create_window
from domain.paging.maintenance_windows.types import NewWindow
from domain.paging.notifications.contact_types.mail import parse_email_address
from domain.paging.notifications.contacts import ContactOwner
from domain.paging.notifications.page_queue import NewPage
from domain.paging.notifications.recipients import PagingPreferences, QuietHours, store_preferences
from domain.projects.namespace_changes import archive_project_row, create_group, unarchive_project
from domain.projects.transfers import transfer_project
from models import (
    Alert,
    Contact,
    Delivery,
    Group,
    Incident,
    IncidentNote,
    Member,
    Page,
    PageMessage,
    PageTotal,
    Project,
    Silence,
    User,
)
from tests.paging.notifications.test_rules import AWAY
from tests.paging.notifications.test_rules import rule as contact_rule
from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.escalations import Escalated
from web.jobs.mail import send_mail

Act = Callable[[Escalated], None]


def new_recipients(mailbox: Mailbox) -> list[str]:
    """Return the recipients since the last call."""
    found = [each[0].partition("@")[0] for each in mailbox.recipients]
    mailbox.recipients.clear()
    return found


# Reasons why a message waits


def waits_for_a_retry(shop: Escalated, alert: int) -> None:
    shop.page([alert], shop.alice)
    shop.wait(seconds=2)
    shop.run(mail_url=AWAY)


def waits_for_a_rule(shop: Escalated, alert: int) -> None:
    assert shop.alice.contact is not None
    contact_rule(shop, shop.alice.contact)
    second = shop.email_contact(shop.alice.id, "second@pager.example")
    contact_rule(shop, second, delay=10)
    shop.page([alert], shop.alice)
    shop.run_for(2)


def waits_for_quiet_hours(shop: Escalated, alert: int) -> None:
    quiet = QuietHours(time_zone="UTC", starts=19 * 60, ends=20 * 60 + 10)
    with shop.session() as session:
        preferences = PagingPreferences(quiet_hours=quiet)
        store_preferences(shop.alice.id, preferences, session=session, now=shop.now)
    shop.page([alert], shop.alice)
    shop.run_for(2)


def waits_for_the_page_before(shop: Escalated, alert: int) -> None:
    shop.page([shop.alert(severity=1)], shop.alice)
    shop.run_for(2)
    shop.page([alert], shop.alice)
    shop.run_for(1)


WAITS = {
    "retry": waits_for_a_retry,
    "rule": waits_for_a_rule,
    "quiet hours": waits_for_quiet_hours,
    "page before": waits_for_the_page_before,
}


# Events during the wait


def remove(shop: Escalated) -> None:
    with shop.session() as session:
        session.execute(delete(Member).where(Member.user_id == shop.alice.id))


def demote(shop: Escalated) -> None:
    with shop.session() as session:
        mine = update(Member).where(Member.user_id == shop.alice.id)
        session.execute(mine.values(role=int(Role.GUEST)))


def block(shop: Escalated) -> None:
    with shop.session() as session:
        session.execute(update(User).where(User.id == shop.alice.id).values(state="locked"))


def silence(shop: Escalated) -> None:
    shop.silence('title=~".+"', hours=1)


def open_window(shop: Escalated) -> None:
    starts_at = (shop.now - timedelta(minutes=1)).isoformat()
    new = NewWindow(name="Upgrade", starts_at=starts_at, duration=timedelta(hours=1))
    with shop.session() as session:
        create_window(shop.work(session), shop.project_view(session), new)


def archive_project(shop: Escalated) -> None:
    with shop.session() as session:
        archive_project_row(shop.project_id, session=session, now=shop.now)


def delete_project(shop: Escalated) -> None:
    with shop.session() as session:
        session.get_one(Project, shop.project_id).deleted_at = shop.now


MEANWHILE: dict[str, tuple[Act, str]] = {
    "removed": (remove, "has no access to the alerts of the project"),
    "demoted": (demote, "has no access to the alerts of the project"),
    "blocked": (block, "is not active"),
    "silenced": (silence, "silence “deploy”"),
    "window": (open_window, "maintenance window “Upgrade”"),
    "archived": (archive_project, "the project is archived"),
    "deleted": (delete_project, "the project is being deleted"),
}


def look_for(shop: Escalated, *, minutes: int, step: int = 60) -> None:
    """Let minutes pass, and run the worker in each step."""
    for _ in range(minutes * 60 // step):
        shop.wait(seconds=step)
        shop.run()


def reasons(shop: Escalated, alert: int) -> list[str]:
    return [text for kind, name, text in shop.activity(alert) if (kind, name) == ("page", "alice")]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_a_waiting_message_is_not_sent_after_an_event_that_forbids_it(
    shop: Escalated, mailbox: Mailbox, wait: str, meanwhile: str
) -> None:
    act, reason = MEANWHILE[meanwhile]
    alert = shop.alert(severity=1)
    WAITS[wait](shop, alert)
    new_recipients(mailbox)
    act(shop)
    look_for(shop, minutes=14)
    assert new_recipients(mailbox) == []
    assert any(reason in each for each in reasons(shop, alert)), shop.activity(alert)
    if wait in {"retry", "rule"}:
        assert cancelled(shop) == (1, 1)


def cancelled(shop: Escalated) -> tuple[int, int]:
    """Return the numbers of canceled messages, as rows and as metrics."""
    with shop.session() as session:
        because = PageMessage.cancelled_because.is_not(None), PageMessage.outcome == "withdrawn"
        rows = session.scalar(select(func.count()).select_from(PageMessage).where(*because))
        total = select(func.sum(PageTotal.count)).where(PageTotal.outcome == "cancelled")
        return rows or 0, session.scalar(total) or 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("meanwhile", ["silenced", "archived"])
def test_a_held_message_is_sent_once_when_the_hold_ends(
    shop: Escalated, mailbox: Mailbox, wait: str, meanwhile: str
) -> None:
    alert = shop.alert(severity=1)
    WAITS[wait](shop, alert)
    new_recipients(mailbox)
    if meanwhile == "silenced":
        number = shop.silence('title=~".+"', hours=1)
        look_for(shop, minutes=14)
        shop.end_silence(number)
    else:
        archive_project(shop)
        look_for(shop, minutes=14)
        with shop.session() as session:
            unarchive_project(shop.project_id, session=session)
    assert new_recipients(mailbox) == []
    look_for(shop, minutes=3)
    assert new_recipients(mailbox) == ["alice"]
    look_for(shop, minutes=20)
    # The second contact of the rules follows the first one.
    assert new_recipients(mailbox) == (["second"] if wait == "rule" else [])
    shop.set_status([alert], "acknowledged", by=shop.bob)
    shop.run_for(40)
    assert new_recipients(mailbox)[:1] == ["alice"]


@pytest.mark.parametrize("wait", ["retry", "rule"])
def test_a_held_message_waits_for_quiet_hours_that_have_started(
    shop: Escalated, mailbox: Mailbox, wait: str
) -> None:
    alert = shop.alert(severity=1)
    WAITS[wait](shop, alert)
    new_recipients(mailbox)
    silence(shop)  # The silence lasts until 21:00.
    quiet = QuietHours(time_zone="UTC", starts=20 * 60 + 30, ends=22 * 60)
    with shop.session() as session:
        preferences = PagingPreferences(quiet_hours=quiet)
        store_preferences(shop.alice.id, preferences, session=session, now=shop.now)
    look_for(shop, minutes=115, step=300)
    assert new_recipients(mailbox) == []
    assert "has quiet hours" in reasons(shop, alert)[-1]
    look_for(shop, minutes=10, step=300)
    assert new_recipients(mailbox)[:1] == ["alice"]


@pytest.mark.parametrize("meanwhile", ["silenced", "archived"])
def test_a_page_held_by_a_clock_ahead_is_checked_in_time(
    shop: Escalated, mailbox: Mailbox, meanwhile: str
) -> None:
    alert = shop.alert(severity=1)
    waits_for_a_retry(shop, alert)
    act = MEANWHILE[meanwhile][0]
    shop.wait(hours=2)
    act(shop)
    look_for(shop, minutes=1)
    shop.wait(hours=-2)
    new_recipients(mailbox)
    with shop.session() as session:
        session.execute(delete(Silence))
        session.get_one(Project, shop.project_id).archived_at = None
        assert count_future_times(session=session, now=shop.now)["pages.due_at"] == 1
        correct_future_times(session=session, now=shop.now)
    look_for(shop, minutes=1, step=5)
    assert new_recipients(mailbox) == ["alice"]
    with shop.session() as session:
        assert "pages.due_at" not in count_future_times(session=session, now=shop.now)


@pytest.mark.parametrize("meanwhile", ["silenced", "archived"])
def test_a_held_page_is_not_corrected_as_a_wrong_clock(shop: Escalated, meanwhile: str) -> None:
    alert = shop.alert(severity=1)
    waits_for_a_retry(shop, alert)
    MEANWHILE[meanwhile][0](shop)
    for minutes in (1, 5, 30):
        look_for(shop, minutes=minutes, step=60)
        with shop.session() as session:
            assert "pages.due_at" not in count_future_times(session=session, now=shop.now)


def test_a_hold_stored_by_an_earlier_release_does_not_stop_messages(
    shop: Escalated, mailbox: Mailbox
) -> None:
    alert = shop.alert(severity=1)
    waits_for_a_retry(shop, alert)
    new_recipients(mailbox)
    with shop.session() as session:
        session.execute(update(Page).values(held_by="a silence"))
    look_for(shop, minutes=10)
    assert new_recipients(mailbox) == ["alice"]


def test_only_forbidden_pages_are_removed_from_a_message(shop: Escalated, mailbox: Mailbox) -> None:
    loud, quiet = shop.alert("Loud", severity=1), shop.alert("Quiet", severity=1)
    shop.page([loud, quiet], shop.alice)
    shop.wait(seconds=2)
    shop.run(mail_url=AWAY)
    number = shop.silence('title="Quiet"', hours=1)
    look_for(shop, minutes=1)
    (sent,) = mailbox.messages
    assert sent["Subject"] == "[high] Loud (acme/shop #1)"
    mailbox.messages.clear()
    shop.end_silence(number)
    look_for(shop, minutes=2)
    (sent,) = mailbox.messages
    assert sent["Subject"] == "[high] Quiet (acme/shop #2)"
    assert cancelled(shop) == (0, 0)


def break_report(shop: Escalated, alert: int) -> None:
    with shop.session() as session:
        broken = Delivery(
            project_id=shop.project_id,
            format="unknown",
            received_at=shop.now,
            status_code=200,
            size=2,
            body=b"{}",
            sender="192.0.2.1",
            **_NOTHING,
        )
        session.add(broken)
        session.flush()
        session.get_one(Alert, alert).delivery_id = broken.id


def test_an_unparsable_report_does_not_delay_notices(shop: Escalated, mailbox: Mailbox) -> None:
    shop.person("maria", role=Role.MAINTAINER)
    shop.policy("0s user:alice")
    alert = shop.alert(severity=1)
    shop.pass_time(minutes=1)
    shop.pass_time(minutes=6)
    new_recipients(mailbox)
    shop.silence('title="Quiet"', hours=1)
    break_report(shop, alert)
    send_mail(shop.settings, clock=lambda: shop.now)
    assert new_recipients(mailbox) == ["maria"]


def test_an_unparsable_report_does_not_delay_pages(shop: Escalated, mailbox: Mailbox) -> None:
    shop.silence('title="Quiet"', hours=1)
    first, second, quiet = (shop.alert(each, severity=1) for each in ("One", "Two", "Quiet"))
    break_report(shop, first)
    shop.page([first, second, quiet], shop.alice)
    shop.run_for(3)
    (sent,) = mailbox.messages
    assert sent["Subject"] == "[high] 2 alerts in acme/shop: One and others"
    assert "Quiet" not in sent.text


_NOTHING = dict.fromkeys(("opened", "joined", "resolved", "skipped"), 0)


def test_a_manual_page_is_sent_although_the_alert_is_silenced(
    shop: Escalated, mailbox: Mailbox
) -> None:
    alert = shop.alert(severity=1)
    key = f"asked: alert {alert}, user {shop.alice.id}"
    page = NewPage(key=key, project_id=shop.project_id, alert_id=alert, user_id=shop.alice.id)
    shop.queue([page])
    silence(shop)
    shop.run_for(3)
    assert new_recipients(mailbox) == ["alice"]


def test_a_manual_page_is_sent_after_the_project_is_unarchived(
    shop: Escalated, mailbox: Mailbox
) -> None:
    assert shop.alice.contact is not None
    contact_rule(shop, shop.alice.contact)
    second = shop.email_contact(shop.alice.id, "second@pager.example")
    contact_rule(shop, second, delay=10)
    alert = shop.alert(severity=1)
    shop.set_status([alert], "acknowledged", by=shop.bob)
    key = f"asked: alert {alert}, user {shop.alice.id}"
    page = NewPage(key=key, project_id=shop.project_id, alert_id=alert, user_id=shop.alice.id)
    shop.queue([page])
    shop.run_for(2)
    assert new_recipients(mailbox) == ["alice"]
    archive_project(shop)
    look_for(shop, minutes=12)
    with shop.session() as session:
        unarchive_project(shop.project_id, session=session)
    look_for(shop, minutes=15)
    assert new_recipients(mailbox) == ["alice", "second"]


def test_a_group_s_channel_gets_no_pages_of_a_project_that_left_the_group(
    shop: Escalated, mailbox: Mailbox
) -> None:
    with shop.session() as session:
        create_group("other", reserved=frozenset(), session=session, now=shop.now)
        group_id = session.scalars(select(Group.id).where(Group.path == "acme")).one()
    address = parse_email_address("room@chat.example")
    room = shop.contact(ContactOwner(group_id=group_id), address, label="ops")
    alert = shop.alert(severity=1)
    page = NewPage(key="1", project_id=shop.project_id, alert_id=alert, channel_id=room.id)
    shop.queue([page])
    shop.wait(seconds=2)
    shop.run(mail_url=AWAY)
    with shop.session() as session:
        transfer_project(shop.project_id, "other", session=session, now=shop.now)
    look_for(shop, minutes=10)
    assert new_recipients(mailbox) == []
    text = "no longer belongs to the project and was not paged"
    assert ("page", "ops", text) in shop.activity(alert)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("meanwhile", ["removed", "blocked", "archived"])
def test_waiting_pages_about_incidents_are_checked(
    shop: Escalated, mailbox: Mailbox, meanwhile: str
) -> None:
    act, reason = MEANWHILE[meanwhile]
    with shop.session() as session:
        incident = Incident(
            project_id=shop.project_id,
            iid=1,
            title="Shop is down",
            description="",
            urgency=4,
            author_name="",
            status="triggered",
            created_at=shop.now,
            updated_at=shop.now,
        )
        session.add(incident)
        session.flush()
        incident_id = incident.id
    shop.queue(
        [
            NewPage(
                key="asked: 1",
                project_id=shop.project_id,
                incident_id=incident_id,
                user_id=shop.alice.id,
            )
        ]
    )
    shop.wait(seconds=2)
    shop.run(mail_url=AWAY)
    act(shop)
    look_for(shop, minutes=10)
    assert new_recipients(mailbox) == []
    with shop.session() as session:
        texts: Sequence[str] = session.scalars(select(IncidentNote.text)).all()
    assert any(reason in each for each in texts), texts


# Effects on escalations


def test_the_next_step_runs_immediately_if_the_page_of_a_step_is_cancelled(
    shop: Escalated, mailbox: Mailbox
) -> None:
    shop.policy("0s user:alice", "60m user:bob")
    alert = shop.alert(severity=1)
    shop.follow()
    shop.wait(seconds=2)
    shop.run(mail_url=AWAY)
    new_recipients(mailbox)
    remove(shop)
    for _ in range(3):
        shop.pass_time(seconds=20)
    assert new_recipients(mailbox) == ["bob"]
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]


@pytest.mark.long
def test_a_held_step_pages_after_the_silence_and_delays_the_next_step(
    shop: Escalated, mailbox: Mailbox
) -> None:
    shop.policy("0s user:alice", "20m user:bob")
    alert = shop.alert(severity=1)
    shop.follow()
    number = shop.silence('title=~".+"', hours=1)
    for _ in range(10):
        shop.pass_time(minutes=1)
    assert new_recipients(mailbox) == []
    shop.end_silence(number)
    for _ in range(4):
        shop.pass_time(seconds=27)
    assert new_recipients(mailbox) == ["alice"]
    assert shop.paged(alert) == [("alice", 1, 1)]
    for _ in range(25):
        shop.pass_time(minutes=1)
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]


@pytest.mark.long
def test_maintainers_get_no_notice_about_a_silenced_alert(shop: Escalated) -> None:
    shop.person("maria", role=Role.MAINTAINER)
    shop.policy("0s user:alice")
    alert = shop.alert(severity=1)
    shop.pass_time(minutes=1)
    number = shop.silence('title=~".+"', hours=1)
    for _ in range(10):
        shop.pass_time(minutes=1)
    assert shop.notices() == []
    assert shop.escalation(alert).state == "exhausted"
    shop.end_silence(number)
    # The user has the full time of the policy again.
    for _ in range(4):
        shop.pass_time(minutes=1)
    assert shop.notices() == []
    for _ in range(3):
        shop.pass_time(minutes=1)
    assert [each.subject for each in shop.notices()] == ["Nobody answered alerts in acme/shop"]
    with shop.session() as session:
        assert session.get_one(Alert, alert).status == "triggered"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", ["silenced", "removed", "acknowledged"])
def test_a_waiting_notice_for_maintainers_is_checked_again(
    shop: Escalated, mailbox: Mailbox, what: str
) -> None:
    maria = shop.person("maria", role=Role.MAINTAINER)
    shop.policy("0s user:alice")
    alert = shop.alert(severity=1)
    shop.pass_time(minutes=1)
    shop.pass_time(minutes=6)
    assert [each.subject for each in shop.notices()] == ["Nobody answered alerts in acme/shop"]
    new_recipients(mailbox)
    # The notice waits at both her contact and her account's address.
    with shop.session() as session:
        session.execute(update(PageMessage).where(PageMessage.kind == "notice").values(**_UNSENT))
        mine = update(Contact).where(Contact.user_id == maria.id)
        session.execute(mine.values(next_try_at=shop.now))
    if what == "silenced":
        silence(shop)
    elif what == "removed":
        with shop.session() as session:
            session.execute(delete(Member).where(Member.user_id == maria.id))
    else:
        shop.act(alert, "acknowledged", by=shop.alice)
    shop.run()
    send_mail(shop.settings, clock=lambda: shop.now)
    assert new_recipients(mailbox) == []
    (notice,) = shop.notices()
    waits = what == "silenced"
    assert (notice.last_error or "").startswith("waits: " if waits else "canceled: ")
    with shop.session() as session:
        session.execute(delete(Silence))
    shop.wait(minutes=2)
    shop.run()
    send_mail(shop.settings, clock=lambda: shop.now)
    assert new_recipients(mailbox).count("maria") == (2 if waits else 0)


_UNSENT = {"ended_at": None, "outcome": None}
