"""The self-monitor: a synthetic alert through the public URL, timed to its page."""

from collections.abc import Iterator
from dataclasses import replace
from time import monotonic, sleep

import pytest
from sqlalchemy import select

from domain.access.roles import Role
from models import SelfMonitorCheck
from tests.support.accounts.people import alice, database_of, make_project, make_user, signed_in
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import connect
from tests.support.database.databases import ON_POSTGRES, ON_SQLITE
from tests.support.database.stored import alerts_of
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings
from tests.support.service.receiver import Receiver, running_receiver, running_telephone
from web.jobs.self_monitor import SelfMonitor
from web.settings.reader import Settings, read_settings


@pytest.fixture
def switch() -> Iterator[Receiver]:
    """A dead man's switch at another service."""
    with running_receiver() as receiver:
        yield receiver


@pytest.fixture
def project(gatebell: LiveGatebell) -> str:
    return make_project(gatebell, alice(gatebell))


def settings_for(gatebell: LiveGatebell, project: str, switch: Receiver) -> Settings:
    return replace(
        read_settings(gatebell.environment),
        self_monitor_project=project,
        self_monitor_switch_url=f"{switch.url}?secret=word",
    )


def test_an_alert_is_stored_and_resolved_and_the_switch_is_told(
    gatebell: LiveGatebell, project: str, switch: Receiver
) -> None:
    connect(gatebell, project)
    settings = settings_for(gatebell, project, switch)
    with SelfMonitor(settings) as monitor:
        for _ in range(3):
            made = monitor.check(settings)
            assert (made.problem, made.switch_problem, made.paged) == (None, None, None)
            assert made.stored is not None
            assert made.resolved is not None
    assert [each.path for each in switch.received] == ["/events?secret=word"] * 3
    (last,) = alerts_of(gatebell, project)
    assert (last.status, last.title) == ("resolved", "Self-monitor: a synthetic alert")
    with database_of(gatebell) as session:
        newest = select(SelfMonitorCheck).order_by(SelfMonitorCheck.id.desc()).limit(1)
        assert session.scalars(newest).one().problem is None


@pytest.mark.long
def test_the_page_is_timed_where_somebody_is_to_be_paged(
    gatebell: LiveGatebell, project: str, switch: Receiver
) -> None:
    connect(gatebell, project)
    person = make_user(gatebell)
    give_role(gatebell, project, person, Role.DEVELOPER)
    with running_telephone() as pager:
        contact = ("contacts", "create", person.username, "--type", "apprise")
        gatebell.cli(*contact, "--address", pager.contact_url)
        policy = ("escalations", "create", project, "--name", "all")
        gatebell.cli(*policy, "--step", f"0s user:{person.username}", "--default")
        settings = settings_for(gatebell, project, switch)
        with SelfMonitor(settings) as monitor:
            made = monitor.check(settings)
    assert made.problem is None
    assert made.paged is not None
    assert made.stored is not None
    assert made.paged > made.stored
    assert pager.received
    assert len(switch.received) == 1


@pytest.mark.long
@ON_SQLITE
def test_a_page_that_does_not_leave_is_a_problem_and_the_switch_is_not_told(
    gatebell: LiveGatebell, project: str, switch: Receiver
) -> None:
    connect(gatebell, project)
    person = make_user(gatebell)
    give_role(gatebell, project, person, Role.DEVELOPER)
    policy = ("escalations", "create", project, "--name", "later")
    gatebell.cli(*policy, "--step", f"1h user:{person.username}", "--default")
    settings = replace(settings_for(gatebell, project, switch), self_monitor_deadline_seconds=0)
    with SelfMonitor(settings) as monitor:
        made = monitor.check(settings)
    assert made.problem == "No page was sent within 0 s after the alert was sent."
    assert switch.received == []
    (alert,) = alerts_of(gatebell, project)
    assert alert.status == "resolved"


@ON_POSTGRES
def test_what_cannot_be_sent_is_told_in_a_sentence(
    gatebell: LiveGatebell, project: str, switch: Receiver
) -> None:
    settings = settings_for(gatebell, project, switch)
    with SelfMonitor(settings) as monitor:
        problem = monitor.check(settings).problem
        assert problem == f"The project {project} has no active HTTP endpoint."
        connect(gatebell, project)
        away = replace(settings, base_url="http://127.0.0.1:9")
        problem = str(monitor.check(away).problem)
        assert "could not be given the alert: it refused the connection" in problem
        closed = replace(settings, outgoing_private_addresses="")
        assert "OUTGOING_PRIVATE_ADDRESSES" in str(monitor.check(closed).problem)
        switch.answer = lambda _request: (500, {})
        made = monitor.check(settings)
        assert made.problem is None
        assert "answered 500" in str(made.switch_problem)
        assert "secret" not in str(made.switch_problem)
        unheard = replace(settings, self_monitor_switch_url="http://127.0.0.1:9/?secret=word")
        said = str(monitor.check(unheard).switch_problem)
        assert said == "The dead man's switch could not be told: it refused the connection."


@pytest.mark.long
@ON_SQLITE
def test_the_worker_checks_and_administrators_see_it(gatebell: LiveGatebell, project: str) -> None:
    connect(gatebell, project)
    browser = signed_in(gatebell, make_user(gatebell, admin=True))
    assert "gatebell_self_monitor" not in gatebell.http().get(f"{gatebell.url}/metrics").text
    with changed_settings(
        gatebell, self_monitor_project=project, self_monitor_interval_seconds="10"
    ):
        deadline = monotonic() + 60
        while "stored in" not in (page := browser.get(f"{gatebell.url}/admin").text):
            assert monotonic() < deadline, page
            sleep(0.2)
        while "gatebell_self_monitor_up 1.0" not in (
            metrics := gatebell.http().get(f"{gatebell.url}/metrics").text
        ):
            assert monotonic() < deadline, metrics
            sleep(0.2)
        assert "gatebell_self_monitor_stored_seconds" in metrics
