"""Tests of incident rules that page responders, and of reports about unreachable responders."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from domain.access.roles import Role
from domain.incidents import actions, rule_actions
from domain.incidents.types import NewIncidentRule
from domain.paging.on_call.my_on_call import show_own_on_call
from domain.paging.on_call.my_on_call_types import OwnOnCallQuery
from models import OnCallSchedule
from tests.paging.escalations.test_incident_paging import (
    answer,
    begin_again,
    do,
    page_states,
    timeline,
)
from tests.paging.escalations.test_page_texts import subjects_to, texts_to
from tests.paging.escalations.test_steps_taken import lock, lose_role
from tests.support.database.work import user_actor, work_in
from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.escalations import Escalated

pytestmark = pytest.mark.one_database("sqlite")
_GOES_ON = ", and the escalations of its alerts continue"


def rule(shop: Escalated, *responders: str, quiets: bool = False) -> None:
    new = NewIncidentRule(name="Outage", responders=responders, quiet_alerts=quiets)
    do(shop, rule_actions.create_rule, new)


def assigned(shop: Escalated) -> list[str]:
    return [each.username for each in do(shop, actions.show_incident, 1).assignees]


def not_called(shop: Escalated) -> list[str]:
    """Return the timeline's texts about responders of incident 1 who were not paged."""
    return [
        f"{each.author.username}: {each.text}" if each.author else each.text
        for each in timeline(shop)
        if each.kind == "unreached" or "the rule “Outage”: " in each.text
    ]


@pytest.mark.long
@pytest.mark.both_databases
def test_a_rule_assigns_and_pages_its_responders(shop: Escalated, mailbox: Mailbox) -> None:
    shop.schedule("Primary", shop.bob, shop.alice)
    shop.policy("5m user:alice")
    rule(shop, "schedule:primary", "user:alice", quiets=True)
    alert = shop.alert("Checkout is down", severity=0, fingerprint=b"disk")
    shop.pass_time()
    assert assigned(shop) == ["alice", "bob"]
    assert page_states(shop) == [("@alice", "accepted", ["sent"]), ("@bob", "accepted", ["sent"])]
    assert {each.page.asked_by for each in timeline(shop) if each.page} == {"the rule “Outage”"}
    title = "[critical] Incident: Checkout is down (acme/shop #1)"
    assert (subjects_to(mailbox, "alice"), subjects_to(mailbox, "bob")) == ([title], [title])
    assert "Paged by: the rule “Outage”" in texts_to(mailbox, "bob")[0]
    with shop.session() as session:
        bob = user_actor(shop.bob.id, "bob")
        own = show_own_on_call(work_in(session, actor=bob, now=shop.now), OwnOnCallQuery())
    shown = [(each.title, each.severity, each.web_url) for each in own.incidents]
    url = "http://gatebell.example/acme/shop/-/incidents/1"
    assert (shown, own.alerts) == ([("Checkout is down", "critical", url)], ())
    answer(shop, shop.alice)
    shop.run_for(31)
    # Bob was not named manually, so he is notified that he does not need to respond.
    assert subjects_to(mailbox, "bob")[-1] == (
        "Acknowledged by @alice: Incident: Checkout is down (acme/shop #1)"
    )
    # An alert that joins pages no user, neither by the rule nor by the policy.
    again = begin_again(shop, alert)
    shop.pass_time(minutes=6)
    assert (shop.paged(again), len(page_states(shop))) == ([], 2)


@pytest.mark.long
def test_simultaneous_incidents_are_one_message(shop: Escalated, mailbox: Mailbox) -> None:
    rule(shop, "user:alice")
    shop.alerts(3, title="Disk full", severity=0)
    shop.pass_time()
    assert subjects_to(mailbox, "alice") == [
        "[critical] 3 incidents in acme/shop: Incident: Disk full and others"
    ]


@pytest.mark.long
def test_an_alert_that_ends_before_its_incident_opens_pages_no_user(
    shop: Escalated, mailbox: Mailbox
) -> None:
    new = NewIncidentRule(name="Outage", responders=("user:alice",), close_when_resolved=True)
    do(shop, rule_actions.create_rule, new)
    shop.resolve([shop.alert()])
    shop.pass_time()
    assert do(shop, actions.show_incident, 1).status == "resolved"
    assert texts_to(mailbox, "alice") == []


def _nothing(_shop: Escalated) -> None:
    pass


def _lose_role(shop: Escalated) -> None:
    lose_role(shop, shop.alice)


def _lock(shop: Escalated) -> None:
    lock(shop, shop.alice)


def _discard_schedule(shop: Escalated) -> None:
    with shop.session() as session:  # The deletion of the parent group deletes schedules this way.
        session.query(OnCallSchedule).delete()


@pytest.mark.long
@pytest.mark.parametrize(
    ("responders", "happens", "assignees", "said"),
    [
        (
            ("user:alice", "user:bob"),
            _lose_role,
            ["bob"],
            ["alice: has no access to the alerts of the project: not paged"],
        ),
        (("user:alice", "user:bob"), _lock, ["bob"], ["alice: is not active: not paged"]),
        (
            ("user:bob", "schedule:Empty"),
            _nothing,
            ["bob"],
            ["did not page all responders of the rule “Outage”: nobody is on call in Empty"],
        ),
        (
            ("schedule:Empty",),
            _nothing,
            [],
            [f"paged nobody for the rule “Outage”: nobody is on call in Empty{_GOES_ON}"],
        ),
        (
            ("schedule:Empty",),
            _discard_schedule,
            [],
            [f"paged nobody for the rule “Outage”: a schedule was deleted{_GOES_ON}"],
        ),
    ],
)
def test_unreachable_responders_are_in_the_timeline_and_the_policy_pages(
    shop: Escalated,
    responders: tuple[str, ...],
    happens: Callable[[Escalated], None],
    assignees: list[str],
    said: list[str],
) -> None:
    shop.person("carol", role=Role.MAINTAINER)
    shop.schedule("Empty")
    shop.policy("0s user:bob")
    rule(shop, *responders)
    happens(shop)
    alert = shop.alert()
    shop.pass_time()
    assert assigned(shop) == assignees
    by_rule = [each.page.name for each in timeline(shop) if each.page and each.page.asked_by]
    assert by_rule == [f"@{each}" for each in assignees]
    assert not_called(shop) == said
    assert shop.paged(alert) == [("bob", 1, 1)]
    # The notice is sent only if no responder was reached.
    notices = [each for each in shop.notices() if each.recipient == "carol@accounts.example"]
    assert [each.subject for each in notices] == [
        "Nobody was paged for incidents in acme/shop" for _ in range(not assignees)
    ]
    assert all(
        "#1 Disk full\nhttp://localhost/acme/shop/-/incidents/1\n" in n.text for n in notices
    )


def test_a_responder_without_a_contact_is_assigned_but_not_paged(shop: Escalated) -> None:
    shop.settings = replace(shop.settings, mail_url="")
    shop.person("eve", has_contact=False)
    rule(shop, "user:eve")
    shop.alert()
    shop.follow()
    assert assigned(shop) == ["eve"]
    assert not_called(shop) == [
        "eve: has no confirmed contact: not paged",
        f"paged nobody for the rule “Outage”: none of its responders can be paged{_GOES_ON}",
    ]
