"""The pages of heartbeats: the list, and a page for each heartbeat with its log and snippets."""

from datetime import timedelta

import pytest
import requests

from domain.access.roles import Role
from domain.heartbeats.states import convert_to_unix_ms
from models import Heartbeat
from tests.support.accounts.people import alice, database_of, make_project, now
from tests.support.accounts.team import browser_of
from tests.support.alerts.heartbeats import Job, heartbeat
from tests.support.alerts.integration_pages import words
from tests.support.service.live import LiveGatebell
from tests.support.service.secrets_seen import SECRETS
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.one_database("postgres")


@pytest.fixture
def project(gatebell: LiveGatebell) -> str:
    return make_project(gatebell, alice(gatebell))


@pytest.fixture
def browser(gatebell: LiveGatebell, project: str) -> requests.Session:
    """The browser of a maintainer."""
    return browser_of(gatebell, project, Role.MAINTAINER)


def at(gatebell: LiveGatebell, project: str, rest: str = "") -> str:
    return f"{gatebell.url}/{project}/-/heartbeats{rest}"


@pytest.mark.long
def test_a_maintainer_creates_a_heartbeat_and_copies_its_url(
    gatebell: LiveGatebell, project: str, browser: requests.Session
) -> None:
    empty = browser.get(at(gatebell, project))
    assert "No heartbeats yet" in empty.text
    page = browser.get(at(gatebell, project, "/new"))
    made = submit(browser, page, form_with(page, "grace"), name="backup", every="5m", grace="1m")
    shown = browser.get(gatebell.url + made.headers["Location"])
    assert "Monitoring starts with the first ping." in shown.text
    key = shown.text.partition("/-/ping/")[2][:36]
    SECRETS.remember(key)
    job = Job(0, project, f"{gatebell.url}/-/ping/{key}")
    assert job.ping(method="POST", body=b"<b>42 files</b>").status_code == 200
    shown = browser.get(gatebell.url + made.headers["Location"])
    assert "The next ping is expected" in shown.text
    assert "&lt;b&gt;42 files&lt;/b&gt;" in shown.text
    assert shown.headers["Cache-Control"] == "no-store"
    job.ping("/fail")
    assert "1 heartbeat is down" in browser.get(at(gatebell, project)).text


def test_a_late_heartbeat_shows_that_its_alert_is_not_processed_yet(
    gatebell: LiveGatebell, project: str, browser: requests.Session
) -> None:
    job = heartbeat(gatebell, "--every", "5m", "--grace", "1m", project=project)
    job.ping()
    with database_of(gatebell) as session:
        row = session.get_one(Heartbeat, job.id)
        row.counted_from = now() - timedelta(minutes=10)
        # The worker does not check this heartbeat yet.
        row.due_ms = convert_to_unix_ms(now() + timedelta(seconds=50))
        session.commit()
    assert "1 heartbeat is late." in browser.get(at(gatebell, project)).text
    shown = words(browser.get(at(gatebell, project, f"/{job.id}")).text)
    assert "not processed yet, waiting for 4 min" in shown
    assert "unless a ping arrives first" not in shown


@pytest.mark.long
def test_the_form_marks_invalid_fields(
    gatebell: LiveGatebell, project: str, browser: requests.Session
) -> None:
    page = browser.get(at(gatebell, project, "/new"))
    form = form_with(page, "grace")
    for wrong in (
        {"name": ""},
        {"name": "x", "every": ""},
        {"name": "x", "kind": "cron", "cron": "* * * *"},
        {"name": "x", "kind": "cron", "cron": "* * * * *", "time_zone": "Mars"},
        {"name": "x", "grace": "1y"},
    ):
        answer = submit(browser, page, form, **wrong)
        assert answer.status_code == 422, wrong
        assert 'aria-invalid="true"' in answer.text, wrong


@pytest.mark.long
def test_a_heartbeat_is_changed_paused_resumed_and_deleted(
    gatebell: LiveGatebell, project: str, browser: requests.Session
) -> None:
    job = heartbeat(gatebell, project=project, name="backup")
    one = at(gatebell, project, f"/{job.id}")
    page = browser.get(f"{one}/edit")
    form = form_with(page, "grace")
    assert (form.value("name"), form.value("every")) == ("backup", "1h")
    assert submit(browser, page, form, kind="cron", cron="").status_code == 422
    submit(browser, page, form, kind="cron", cron="30 3 * * *", time_zone="Europe/Berlin")
    page = browser.get(one)
    assert "Europe/Berlin" in page.text
    submit(browser, page, form_to(page, "/pause"))
    page = browser.get(one)
    assert "no alert opens" in page.text
    submit(browser, page, form_to(page, "/resume"))
    page = browser.get(one)
    submit(browser, page, form_to(page, "/reset_url"), overlap="1h")
    page = browser.get(one)
    assert "The old URL is accepted until" in page.text
    assert job.ping().status_code == 200
    page = browser.get(f"{one}/edit")
    gone = submit(browser, page, form_to(page, "/delete"))
    assert "backup was deleted" in browser.get(gatebell.url + gone.headers["Location"]).text
    assert browser.get(one).status_code == 404


def test_a_developer_sees_states_and_logs_and_no_url(gatebell: LiveGatebell, project: str) -> None:
    job = heartbeat(gatebell, project=project)
    job.ping()
    browser = browser_of(gatebell, project, Role.DEVELOPER)
    page = browser.get(at(gatebell, project, f"/{job.id}"))
    assert page.status_code == 200
    assert job.url not in page.text
    assert "/-/ping/" not in page.text


def test_the_page_of_the_alert_of_a_heartbeat_shows_the_failed_ping(
    gatebell: LiveGatebell, project: str, browser: requests.Session
) -> None:
    job = heartbeat(gatebell, project=project, name="backup")
    job.ping("/3", method="POST", body=b"no space left")
    page = browser.get(f"{gatebell.url}/{project}/-/alerts/1")
    assert page.status_code == 200
    assert "Heartbeat failed: backup" in page.text
    assert "The job ended with exit status 3." in page.text
    assert "no space left" in page.text
    assert "Gatebell heartbeat" in page.text
