"""A time zone of one's own: pages and messages show times in it."""

import pytest
from sqlalchemy import select

from domain.access.roles import Role
from models import Silence, User
from tests.http.api.projects.test_projects_api import script_of
from tests.support.accounts.people import alice, database_of, make_user, now, signed_in
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")


@pytest.mark.both_databases
def test_pages_show_times_in_the_zone_of_the_profile(gatebell: LiveGatebell) -> None:
    endpoint, person = connect(gatebell), make_user(gatebell)
    give_role(gatebell, endpoint.project, person, Role.DEVELOPER)
    endpoint.accepted(title="x", start_time="2026-01-31T23:30:00Z")
    browser = signed_in(gatebell, person)
    alert = f"{gatebell.url}/{endpoint.project}/-/alerts/1"
    assert "2026-01-31 23:30:00 UTC" in browser.get(alert).text
    page = browser.get(f"{gatebell.url}/-/user_settings/profile")
    form = form_with(page, "time_zone")
    assert form.value("time_zone") == "UTC"
    assert submit(browser, page, form, time_zone="Asia/Kathmandu").status_code == 302
    assert "2026-02-01 05:15:00 +05:45" in browser.get(alert).text
    # Those of others are as they were.
    assert "2026-01-31 23:30:00 UTC" in signed_in(gatebell, alice(gatebell)).get(alert).text


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "x" * 10_000, "localtime"])
def test_what_is_no_zone_is_refused(gatebell: LiveGatebell, zone: str) -> None:
    browser = signed_in(gatebell, make_user(gatebell))
    page = browser.get(f"{gatebell.url}/-/user_settings/profile")
    answer = submit(browser, page, form_with(page, "time_zone"), time_zone=zone)
    assert answer.status_code == 422
    assert "Choose a time zone" in answer.text


def test_a_name_changed_by_a_token_leaves_the_zone(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    gatebell.cli("users", "change", person.username, "--time-zone", "europe/berlin")
    assert script_of(gatebell, person).send("PUT", "/user", json={"name": "New"}).ok
    with database_of(gatebell) as session:
        found = session.scalar(select(User).where(User.username == person.username))
        assert found is not None
        assert (found.name, found.time_zone) == ("New", "Europe/Berlin")


def test_a_silence_starts_when_the_clock_of_its_author_says(gatebell: LiveGatebell) -> None:
    endpoint, person = connect(gatebell), make_user(gatebell)
    give_role(gatebell, endpoint.project, person, Role.DEVELOPER)
    gatebell.cli("users", "change", person.username, "--time-zone", "Asia/Kathmandu")
    browser = signed_in(gatebell, person)
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/silences/new")
    assert "Start (Asia/Kathmandu)" in page.text
    values = {"matchers": "service=x", "starts_at": f"{now().year + 1}-01-31T09:00"}
    answer = submit(browser, page, form_with(page, "starts_at"), duration="1h", **values)
    shown = browser.get(gatebell.url + answer.headers["Location"]).text
    assert f"{now().year + 1}-01-31 09:00:00 +05:45" in shown
    with database_of(gatebell) as session:
        silence = session.scalars(select(Silence).order_by(Silence.id.desc())).first()
        assert silence is not None
        assert (silence.starts_at.hour, silence.starts_at.minute) == (3, 15)
