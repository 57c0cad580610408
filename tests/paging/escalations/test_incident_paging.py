"""Tests of pages about incidents, and of acknowledged incidents that silence joining alerts."""

from collections.abc import Callable
from typing import Any

import pytest

from domain.audit.events import EventActor
from domain.core.errors import InvalidError
from domain.incidents import actions, rule_actions
from domain.incidents.changes import change_incident_status
from domain.incidents.timelines.actions import list_incident_timeline
from domain.incidents.timelines.types import TimelineItem, TimelineQuery
from domain.incidents.types import (
    IncidentChange,
    IncidentPageBody,
    NewIncident,
    NewIncidentRule,
)
from models import Incident, IncidentNote
from tests.paging.escalations.test_page_texts import subjects_to, texts_to
from tests.paging.notifications.test_rules import AWAY
from tests.paging.notifications.test_rules import rule as contact_rule
from tests.support.database.work import work_in
from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.escalations import Escalated
from tests.support.notifications.paging import Person

pytestmark = pytest.mark.one_database("sqlite")


def do(shop: Escalated, act: Callable[..., Any], *given: Any) -> Any:
    with shop.session() as session:
        return act(shop.work(session), shop.project_view(session), *given)


def change(shop: Escalated, **given: Any) -> None:
    do(shop, actions.change_incident, 1, IncidentChange.model_validate(given))


def rule(shop: Escalated, *, quiets: bool) -> None:
    do(shop, rule_actions.create_rule, NewIncidentRule(name="all", quiet_alerts=quiets))


def begin_again(shop: Escalated, alert: int) -> int:
    """Resolve an alert, open another one with the same fingerprint, and return its id."""
    shop.resolve([alert])
    shop.pass_time(minutes=1)
    again = shop.alert(fingerprint=b"disk")
    shop.pass_time(minutes=1)
    return again


@pytest.mark.long
@pytest.mark.both_databases
def test_alerts_that_join_an_acknowledged_incident_do_not_page_until_they_leave_it(
    shop: Escalated,
) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    rule(shop, quiets=True)
    first = shop.alert(fingerprint=b"disk")
    shop.pass_time()
    assert shop.paged(first) == [("alice", 1, 1)]
    change(shop, status="acknowledged")
    again = begin_again(shop, first)
    assert (do(shop, actions.show_incident, 1).alerts, shop.paged(again)) == ((1, 2), [])
    assert shop.said(again)[-1] == (
        "Paging is held back: it belongs to incident #1, which somebody has acknowledged."
    )
    change(shop, status="triggered")
    shop.pass_time(minutes=1)
    assert shop.paged(again) == [("alice", 1, 1)]
    change(shop, status="acknowledged")
    third = begin_again(shop, again)
    assert shop.paged(third) == []
    do(shop, actions.unlink_alert, 1, 3)
    shop.pass_time(minutes=1)
    assert shop.paged(third) == [("alice", 1, 1)]


@pytest.mark.long
def test_alerts_of_an_acknowledged_incident_page_if_quiet_alerts_is_off(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    rule(shop, quiets=False)
    first = shop.alert(fingerprint=b"disk")
    shop.pass_time()
    change(shop, status="acknowledged")
    again = begin_again(shop, first)
    assert shop.paged(again) == [("alice", 1, 1)]
    change(shop, quiet_alerts=True)
    third = begin_again(shop, again)
    assert shop.paged(third) == []


@pytest.mark.long
@pytest.mark.both_databases
def test_assignees_are_paged_about_an_incident(shop: Escalated, mailbox: Mailbox) -> None:
    given = {"title": "Checkout is down", "severity": "critical", "assignees": ["alice"]}
    do(shop, actions.create_incident, NewIncident.model_validate({**given, "page_assignees": True}))
    shop.run_for(3)
    assert subjects_to(mailbox, "alice") == ["[critical] Incident: Checkout is down (acme/shop #1)"]
    (text,) = texts_to(mailbox, "alice")
    assert "Paged by: the operator" in text
    assert "/acme/shop/-/incidents/1" in text
    change(shop, assignees=["alice", "bob"], page_assignees=True)
    shop.run_for(31)
    assert [len(texts_to(mailbox, name)) for name in ("alice", "bob")] == [1, 1]
    do(shop, actions.page_responders, 1, IncidentPageBody())
    shop.run_for(31)
    assert [len(texts_to(mailbox, name)) for name in ("alice", "bob")] == [2, 2]
    paged = [row.text for row in shop.rows(IncidentNote) if row.kind == "paged"]
    assert paged == ["alice", "bob", "alice", "bob"]


def test_paging_an_unreachable_user_about_an_incident_fails(shop: Escalated) -> None:
    shop.person("eve", has_contact=False)
    do(shop, actions.create_incident, NewIncident(title="Slow"))
    with pytest.raises(InvalidError, match="The incident has no assignees"):
        do(shop, actions.page_responders, 1, IncidentPageBody())
    with pytest.raises(InvalidError, match="@eve has no confirmed contact, so no page"):
        do(shop, actions.page_responders, 1, IncidentPageBody(users=("eve",)))
    change(shop, status="resolved")
    with pytest.raises(InvalidError, match="The incident is closed"):
        do(shop, actions.page_responders, 1, IncidentPageBody(users=("alice",)))


def answer(shop: Escalated, by: Person, status: str = "acknowledged") -> None:
    """Set the status of incident 1 as a user does."""
    with shop.session() as session:
        row, actor = session.get_one(Incident, 1), EventActor(id=by.id, name=by.username)
        change_incident_status(work_in(session, now=shop.now), row, status, actor=actor)


def timeline(shop: Escalated) -> list[TimelineItem]:
    query = TimelineQuery(sort="asc")
    return [*do(shop, list_incident_timeline, 1, query).items]


def page_states(shop: Escalated) -> list[tuple[str, str | None, list[str]]]:
    """Return the paged users of incident 1, with the state of each page and of its messages."""
    found = (each.page for each in timeline(shop) if each.page)
    return [(each.name, each.state, [at.state for at in each.contacts]) for each in found]


@pytest.mark.long
@pytest.mark.both_databases
def test_pages_of_incidents_follow_the_user_s_notification_rules(
    shop: Escalated, mailbox: Mailbox
) -> None:
    first = shop.alice.contact
    second = shop.email_contact(shop.alice.id, "second@pager.example")
    assert first is not None
    contact_rule(shop, first)
    contact_rule(shop, second, delay=5)
    given = {"title": "Slow", "severity": "low", "assignees": ["alice", "bob"]}
    do(shop, actions.create_incident, NewIncident.model_validate({**given, "page_assignees": True}))
    assert page_states(shop) == [("@alice", "waiting", []), ("@bob", "waiting", [])]
    shop.run_for(3)
    assert page_states(shop) == [
        ("@alice", "accepted", ["sent", "waiting"]),
        ("@bob", "accepted", ["sent"]),
    ]
    assert {each.page.asked_by for each in timeline(shop) if each.page} == {"the operator"}
    answer(shop, shop.alice)
    shop.run_for(330)
    assert texts_to(mailbox, "second") == []
    assert page_states(shop)[0][2] == ["sent", "withdrawn"]
    # Bob was paged explicitly, so Alice's answer does not cancel his page while the incident is
    # open.
    answer(shop, shop.alice, "resolved")
    shop.run_for(31)
    assert subjects_to(mailbox, "bob")[-1] == ("Resolved by @alice: Incident: Slow (acme/shop #1)")
    assert len(texts_to(mailbox, "alice")) == 1
    # Pages about incidents and alerts are combined into one message.
    do(shop, actions.create_incident, NewIncident.model_validate({**given, "page_assignees": True}))
    shop.page([shop.alert(severity=2)], shop.bob)
    shop.run_for(31)
    assert subjects_to(mailbox, "bob")[-1] == (
        "[medium] 1 alert and 1 incident in acme/shop: Disk full and others"
    )


@pytest.mark.long
@pytest.mark.both_databases
def test_the_timeline_shows_that_a_page_of_an_incident_failed(shop: Escalated) -> None:
    given = {"title": "Slow", "assignees": ["alice"], "page_assignees": True}
    do(shop, actions.create_incident, NewIncident.model_validate(given))
    shop.run_for(3, mail_url=AWAY)
    assert page_states(shop) == [("@alice", "failed", ["waiting"])]
    (said,) = [each for each in timeline(shop) if each.kind == "unreached"]
    assert said.author is not None
    assert (said.author.username, said.text.partition(":")[0]) == ("alice", "was not reached")
    shop.wait(minutes=10)
    shop.run()
    assert page_states(shop) == [("@alice", "accepted", ["sent"])]
