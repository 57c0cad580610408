"""Tests that an alert's page explains who was paged, who is next, or why no user is paged."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete

from domain.paging.escalations.reporting.explanation import EscalationView, list_sent_pages
from domain.paging.escalations.reporting.last_pages import list_last_pages
from domain.paging.escalations.state import EscalationState
from domain.paging.escalations.types import SentPage
from domain.paging.notifications.states import PageState
from models import ContactRule, Escalation, Silence, User
from tests.paging.escalations.test_handling import set_timeout
from tests.support.notifications.escalations import Escalated

pytestmark = pytest.mark.one_database("sqlite")


def shown(shop: Escalated, alert_id: int) -> EscalationView:
    return shop.explained(alert_id)


def pages_for(shop: Escalated, alert_id: int) -> Sequence[SentPage]:
    with shop.session() as session:
        return list_sent_pages([alert_id], None, size=9, is_oldest_first=False, session=session)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J1")
def test_the_explanation_names_the_paged_and_the_next_user(shop: Escalated) -> None:
    night = shop.policy("0s user:alice", "5m user:bob", repeats=1, is_default=False)
    shop.route(night, "Urgent", severities=["critical"])
    alert = shop.alert()
    begun = shop.now
    shop.pass_time()
    view = shown(shop, alert)
    assert (view.policy, view.reason) == ("Night", "chosen by the route Urgent")
    assert (view.next_step, view.round) == (2, 1)
    assert view.next_at is not None
    assert (view.next_at - begun).total_seconds() == 300
    assert view.next_whom == "@bob"
    (page,) = pages_for(shop, alert)
    assert (page.at, page.name, page.round, page.step) == (begun, "@alice", 1, 1)
    shop.pass_time(minutes=5)
    shop.take_steps()
    view = shown(shop, alert)
    assert (view.next_step, view.round) == (1, 2)
    assert [page.name for page in pages_for(shop, alert)] == ["@bob", "@alice"]
    shop.act(alert, "acknowledged", by=shop.bob)
    shop.pass_time(minutes=1)
    view = shown(shop, alert)
    assert (view.state, view.next_at) == (EscalationState.STOPPED, None)
    assert view.sentence == "Paging stopped when @bob acknowledged the alert."
    shop.resolve([alert])
    assert shown(shop, alert).sentence == "Paging stopped when @bob acknowledged the alert."


def test_the_first_screen_names_the_last_step_and_the_recipients_of_the_next(
    shop: Escalated,
) -> None:
    shop.policy("0s user:alice", "5m user:alice user:bob", "10m user:alice")
    alert = shop.alert()
    shop.pass_time()
    shop.pass_time(minutes=5)
    with shop.session() as session:
        last = list_last_pages(alert, session=session)
    assert [(page.name, page.step) for page in last] == [("@alice", 2), ("@bob", 2)]
    view = shown(shop, alert)
    assert (view.steps, view.next_step, view.next_whom) == (3, 3, "@alice")
    shop.act(alert, "acknowledged", by=shop.bob)
    shop.pass_time(minutes=1)
    assert shown(shop, alert).sentence == "Paging stopped when @bob acknowledged the alert."


def test_an_unsent_page_about_a_resolved_alert_is_not_shown_as_waiting(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    alert = shop.alert()
    shop.follow()
    states = []
    for _ in range(2):
        with shop.session() as session:
            states += [page.state for page in list_last_pages(alert, session=session)]
        # The worker has not processed the resolution yet.
        shop.resolve([alert])
    assert states == [PageState.WAITING, PageState.WITHDRAWN]


@pytest.mark.long
def test_the_explanation_shows_when_a_delayed_contact_follows(shop: Escalated) -> None:
    later = shop.email_contact(shop.alice.id, "later@pager.example")
    assert shop.alice.contact is not None
    with shop.session() as session:
        for contact, minutes in ((shop.alice.contact, 0), (later, 5)):
            values = {"alerts": "all", "delay_minutes": minutes, "created_at": shop.now}
            session.add(ContactRule(user_id=shop.alice.id, contact_id=contact.id, **values))
    shop.policy("0s user:alice", "30m user:bob")
    alert = shop.alert()
    shop.pass_time()
    (page,) = pages_for(shop, alert)
    at_once, follows = page.contacts
    assert (page.state, at_once.state, at_once.follows_at) == ("accepted", "sent", None)
    assert (follows.state, follows.follows_at) == (
        "waiting",
        page.at + timedelta(minutes=5, seconds=1),
    )
    # Without an immediate rule, the next step runs before the later contact's rule.
    with shop.session() as session:
        session.query(ContactRule).filter_by(delay_minutes=0).delete()
    other = shop.alert()
    shop.pass_time(minutes=1)
    assert shop.paged(other) == [("alice", 1, 1)]
    shop.pass_time(minutes=2)
    assert shop.paged(other) == [("alice", 1, 1), ("bob", 1, 2)]
    shop.pass_time(minutes=4)
    assert pages_for(shop, other)[-1].state == "accepted"


def test_the_explanation_gives_the_reason_why_no_user_is_paged(shop: Escalated) -> None:
    before = shop.alert()
    assert shown(shop, before).sentence.startswith("This project has no escalation policy")
    night = shop.policy("0s user:alice", is_default=False)
    assert "opened before" in shown(shop, before).sentence
    shop.route(None, "Tests", environments=["test"])
    shop.route(night, environments=["prod"])
    test, other = shop.alert(environment="test"), shop.alert(environment="lab")
    shop.silence('environment="prod"', hours=1)
    silent = shop.alert(environment="prod")
    shop.pass_time()
    assert shown(shop, test).sentence == (
        "Nobody is paged for this alert: it matched the route Tests, which does not page anyone."
    )
    none = "Nobody is paged for this alert: no route matched, and there was no default policy."
    assert shown(shop, other).sentence == none
    shop.policy("0s user:alice", name="Later")
    view = shown(shop, other)
    assert view.sentence == f"{none} The policy Later applies only to later alerts."
    assert (view.policy, view.can_escalate, view.lacks_policy) == (None, True, False)
    held = shown(shop, silent)
    assert held.sentence == "Nobody is paged until 2026-03-01 21:00 UTC: silence “deploy”."
    assert held.policy == "Night"


def test_a_silence_without_a_comment_is_named_by_its_id(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    number = shop.silence('environment="prod"', hours=1)
    with shop.session() as session:
        session.get_one(Silence, number).comment = ""
    alert = shop.alert(environment="prod")
    shop.pass_time()
    sentence = f"Nobody is paged until 2026-03-01 21:00 UTC: silence {number}."
    assert shown(shop, alert).sentence == sentence


def test_the_sentence_names_a_round_that_reached_nobody(shop: Escalated) -> None:
    shop.schedule("Empty")
    shop.policy("0s schedule:Empty")
    alert = shop.alert()
    shop.pass_time()
    sentence = shown(shop, alert).sentence
    assert sentence.startswith("Round 1 reached nobody. Step 1 of round 2 pages ")


def test_a_report_that_ended_an_alert_is_not_attributed_to_a_user(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    alert = shop.alert()
    shop.pass_time()
    shop.resolve([alert])
    shop.pass_time()
    assert shown(shop, alert).sentence == "Paging stopped when the alert was resolved."


@pytest.mark.long
def test_a_deleted_user_is_not_named(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    alert = shop.alert()
    shop.pass_time()
    with shop.session() as session:
        session.get_one(User, shop.alice.id).kind = "erased"
    assert [page.name for page in pages_for(shop, alert)] == ["a deleted user"]


def test_an_unprocessed_alert_is_not_explained_as_without_a_policy(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    # The database's clock sets the time since which a change waits.
    shop.now = datetime.now(tz=UTC)
    alert = shop.alert()
    shop.now += timedelta(seconds=40)
    view = shown(shop, alert)
    assert (view.state, view.policy, view.lacks_policy) == (
        EscalationState.UNPROCESSED,
        "Night",
        False,
    )
    assert view.sentence.startswith("The alert is not processed yet, waiting for ")
    assert view.waiting is not None
    assert 39 < view.waiting.total_seconds() < 60
    shop.follow()
    assert shown(shop, alert).waiting is None


def test_the_sentence_names_the_next_step_and_the_delay_of_the_worker(
    shop: Escalated,
) -> None:
    policy = shop.policy("0s user:alice", "5m user:bob", repeats=1)
    alert = shop.alert()
    shop.pass_time()
    assert shown(shop, alert).sentence == "Step 2 pages @bob at 2026-03-01 20:05 UTC."
    shop.now += timedelta(minutes=5, seconds=37)
    late = "It is not processed yet, waiting for 40 s."
    assert shown(shop, alert).sentence == f"Step 2 pages @bob now. {late}"
    shop.follow()
    shop.run_for(3)
    shop.take_steps()
    assert shown(shop, alert).sentence.startswith("Step 1 of round 2 pages @alice at ")
    set_timeout(shop, policy.id, "30m")
    shop.act(alert, "acknowledged", by=shop.alice)
    assert shown(shop, alert).sentence == "The alert is acknowledged: nobody else is paged."
    shop.follow()
    shop.now += timedelta(minutes=30, seconds=40)
    sentence = shown(shop, alert).sentence
    assert sentence.startswith("The acknowledgement expired at 2026-03-01 20:")
    assert sentence.endswith(late)


def test_a_deleted_record_is_not_explained_as_a_missing_policy(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    alert = shop.alert()
    shop.follow()
    with shop.session() as session:
        session.execute(delete(Escalation))
    shop.now += timedelta(days=91)
    assert (
        shown(shop, alert).sentence == "No pages are recorded. Records are deleted after 90 days."
    )
