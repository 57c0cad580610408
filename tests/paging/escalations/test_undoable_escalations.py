"""Tests of manual escalations that wait five seconds, during which they can be undone."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from domain.access.actor import AccessMethod, Actor
from domain.alerts.handling.status import StatusChange, change_alert_status
from domain.audit.events import EventActor as Author
from domain.audit.events import EventSource
from domain.paging.escalations import manual_actions, undoable_escalations
from domain.paging.escalations.reporting.explanation import explain_escalation
from domain.projects.access import get_project
from domain.projects.views import Viewer
from models import Alert, PendingEscalation, User
from tests.paging.escalations.test_handling import user_actions
from tests.support.database.work import work_in
from tests.support.notifications.escalations import Escalated
from tests.support.notifications.paging import Person
from web.jobs.escalations import PendingEscalationJob
from web.settings.policies import alerts as policies

pytestmark = pytest.mark.both_databases


def by_page(shop: Escalated, act: Callable[..., Any], alert_id: int, person: Person) -> Any:
    """Perform an action as a user of the web pages."""
    with shop.session() as session:
        source = EventSource(actor=Author(id=person.id, name=person.username))
        actor = Actor(means=AccessMethod.PAGE, id=person.id, name=person.username, source=source)
        viewer = Viewer(user_id=person.id, today=shop.now.date())
        project = get_project("acme/shop", viewer, session=session)
        work = work_in(session, actor=actor, now=shop.now)
        return act(work, project, session.get_one(Alert, alert_id).iid)


def escalate_due(shop: Escalated) -> int:
    """Run the worker's job for pending escalations."""
    with PendingEscalationJob(shop.settings, clock=lambda: shop.now) as job:
        return job.process_all_due_work()


def escalates_to(shop: Escalated, alert_id: int) -> str:
    reading = policies.build_parser_settings(shop.settings)
    with shop.session() as session:
        view = explain_escalation(
            shop.project_id, alert_id, session=session, now=shop.now, parser_settings=reading
        )
    return view.escalates_to


def is_pending(shop: Escalated) -> bool:
    with shop.session() as session:
        return session.scalar(select(PendingEscalation)) is not None


@pytest.fixture
def alert(shop: Escalated) -> int:
    """Open an alert that has paged Alice; the next step pages Bob in half an hour."""
    shop.policy("0s user:alice", "30m user:bob")
    alert = shop.alert()
    shop.pass_time()
    return alert


def test_the_next_step_runs_once_after_five_seconds(shop: Escalated, alert: int) -> None:
    assert escalates_to(shop, alert) == "@bob"
    first = by_page(shop, undoable_escalations.request_escalation, alert, shop.alice)
    shop.pass_time(seconds=1)
    again = by_page(
        shop, undoable_escalations.request_escalation, alert, shop.alice
    )  # This is a second tap.
    assert again == first
    assert (first.by, escalate_due(shop)) == ("alice", 0)
    shop.pass_time(seconds=5)
    assert shop.paged(alert) == [("alice", 1, 1)]
    assert (escalate_due(shop), escalate_due(shop)) == (1, 0)
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]
    assert user_actions(shop, alert) == ["alice escalated it: the next step runs now"]
    assert escalates_to(shop, alert) == "@alice"


def test_a_pending_escalation_can_be_undone_by_another_user(shop: Escalated, alert: int) -> None:
    by_page(shop, undoable_escalations.request_escalation, alert, shop.alice)
    assert by_page(shop, undoable_escalations.undo_escalation, alert, shop.bob) is True
    assert by_page(shop, undoable_escalations.undo_escalation, alert, shop.bob) is False
    shop.pass_time(seconds=6)
    assert escalate_due(shop) == 0
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1)]


def test_an_alert_that_is_acknowledged_during_the_wait_is_not_escalated(
    shop: Escalated, alert: int
) -> None:
    by_page(shop, undoable_escalations.request_escalation, alert, shop.alice)
    with shop.session() as session:
        by = Author(id=shop.bob.id, name="bob")
        change = StatusChange(status="acknowledged", by=by)
        iid = session.get_one(Alert, alert).iid
        change_alert_status(shop.project_id, iid, change, session=session, now=shop.now)
    shop.pass_time(seconds=6)
    assert escalate_due(shop) == 1
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1)]
    assert "which was canceled. The alert is acknowledged now." in user_actions(shop, alert)[-1]
    assert not is_pending(shop)


def test_the_access_of_the_requesting_user_is_checked_again(shop: Escalated, alert: int) -> None:
    by_page(shop, undoable_escalations.request_escalation, alert, shop.alice)
    with shop.session() as session:
        session.get_one(User, shop.alice.id).state = "blocked"
    shop.pass_time(seconds=6)
    escalate_due(shop)
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1)]
    assert "The account is no longer active." in user_actions(shop, alert)[-1]


def test_the_api_escalates_immediately_and_ends_the_wait(shop: Escalated, alert: int) -> None:
    by_page(shop, undoable_escalations.request_escalation, alert, shop.alice)
    by_page(shop, manual_actions.escalate_alert, alert, shop.bob)
    assert not is_pending(shop)
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]


def test_a_clock_that_was_ahead_delays_nothing(shop: Escalated, alert: int) -> None:
    by_page(shop, undoable_escalations.request_escalation, alert, shop.alice)
    shop.pass_time(seconds=-3600)
    assert escalate_due(shop) == 1
