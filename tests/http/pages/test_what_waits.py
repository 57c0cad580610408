"""The home page and lists of projects: open alerts, silences and on-call shifts of a user."""

import re
from datetime import timedelta

import pytest
from sqlalchemy import insert, select

from domain.access.roles import Role
from models import Project, Silence
from tests.support.accounts.people import (
    alice,
    database_of,
    make_project,
    make_user,
    now,
    signed_in,
)
from tests.support.accounts.team import browser_of, give_role, person_for
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("sqlite")


def silence(gatebell: LiveGatebell, project: str) -> None:
    """Silence the alerts of the service `mail` for two hours."""
    with database_of(gatebell) as session:
        project_id = session.scalar(select(Project.id).where(Project.path == project))
        values = {
            "project_id": project_id,
            "matchers": '{service="mail"}',
            "comment": "",
            "starts_at": now() - timedelta(minutes=1),
            "ends_at": now() + timedelta(hours=2, minutes=1),
            "created_at": now(),
        }
        session.execute(insert(Silence).values(**values))


@pytest.mark.long
@pytest.mark.both_databases
def test_home_counts_open_alerts_and_shows_own_alerts(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)  # A new user has short lists.
    project = make_project(gatebell, alice(gatebell))
    give_role(gatebell, project, person, Role.MAINTAINER)
    endpoint = connect(gatebell, project)
    for number in range(12):
        severity = "critical" if number < 2 else "low"
        endpoint.accepted(title=f"alert {number}", severity=severity, service="mail")
    silence(gatebell, project)
    browser = signed_in(gatebell, person)
    page = browser.get(f"{gatebell.url}/{project}/-/alerts/3")
    submit(browser, page, form_to(page, "/assignee"), assignee=person.username)

    home = browser.get(f"{gatebell.url}/").text
    counts = dict(re.findall(r'/-/alerts\?severity=(\w+)".*?class="badge">([\d,+]+)<', home))
    assert int(counts["critical"]) >= 2
    assert int(counts["low"]) >= 10
    assert home.count("data-alert-row") == 10
    assert f'/-/alerts?assignee={person.username}">1 open alert</a>' in home
    assert "Silenced, ends" in home
    for path in ("/", "/groups", f"/{project.partition('/')[0]}", f"/{project}"):
        shown = browser.get(gatebell.url + path).text
        assert f'href="/{project}/-/silences">1 silence</a> active, ends' in shown, path

    # Users without access to alerts do not see the silences either.
    reporter = browser_of(gatebell, project, Role.REPORTER)
    for path in ("/", f"/{project.partition('/')[0]}", f"/{project}"):
        assert "active, ends" not in reporter.get(gatebell.url + path).text, path


def test_home_shows_that_the_user_is_on_call(gatebell: LiveGatebell) -> None:
    person = person_for(gatebell, Role.DEVELOPER)
    project = make_project(gatebell, alice(gatebell))
    give_role(gatebell, project, person, Role.DEVELOPER)
    rotation = f"daily {person.username} 09:00"
    arguments = ("--name", "Nights", "--time-zone", "UTC", "--rotation", rotation)
    gatebell.cli("schedules", "create", project, *arguments)
    home = signed_in(gatebell, person).get(f"{gatebell.url}/").text
    panel = home[home.index('id="on-call"') :]
    assert "You are on call" in panel
    assert "<bdi>Nights</bdi>" in panel
    other = signed_in(gatebell, make_user(gatebell)).get(f"{gatebell.url}/").text
    assert 'id="on-call"' not in other
