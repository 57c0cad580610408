"""The pages of silences: created from an alert in two clicks, extended and ended."""

import re
from datetime import timedelta
from html import unescape
from urllib.parse import urljoin

import pytest
import requests

from domain.access.roles import Role
from tests.http.paging.silences.conftest import Project
from tests.support.accounts.people import now
from tests.support.accounts.team import browser_of, person_for
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = [pytest.mark.spec("J1"), pytest.mark.both_databases]


@pytest.fixture
def browser(project: Project) -> requests.Session:
    return browser_of(project.gatebell, project.path, Role.DEVELOPER)


def text_of(page: requests.Response) -> str:
    """Return the text of a page without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page.text)).split())


def follow(browser: requests.Session, answer: requests.Response) -> requests.Response:
    assert answer.status_code == 302, text_of(answer)
    return browser.get(urljoin(answer.url, answer.headers["Location"]))


@pytest.mark.long
def test_an_alert_is_silenced_in_two_clicks(project: Project, browser: requests.Session) -> None:
    project.endpoint.accepted(title="Disk full", service="db", hosts=["db-1"], severity="high")
    project.endpoint.accepted(title="Disk full", service="db", hosts=["db-2"])
    alert = browser.get(f"{project.url}/alerts/1")
    (first,) = re.findall(r'href="([^"]*/-/silences/new\?alert=1)"', alert.text)
    page = browser.get(urljoin(alert.url, first))
    assert "This silence would mute 1 open alert. In the last 7 days, 1 alert matched." in (
        text_of(page)
    )
    second = form_with(page, "matchers")
    assert second.value("matchers").splitlines() == [
        'alertname="Disk full"',
        'service="db"',
        'host="db-1"',
    ]
    made = follow(browser, submit(browser, page, second))
    assert "Silence created." in text_of(made)
    me = person_for(project.gatebell, Role.DEVELOPER).username
    silenced = text_of(browser.get(f"{project.url}/alerts/1"))
    assert re.search(rf"Silenced until .{{10,60}}, by @{me}: alertname=", silenced)
    assert "Silenced until" not in text_of(browser.get(f"{project.url}/alerts/2"))
    listed = text_of(browser.get(f"{project.url}/alerts"))
    assert len(re.findall(rf"Silenced, ends [^,]*, by @{me}", listed)) == 1


@pytest.mark.long
def test_a_preview_does_not_store_the_silence(project: Project, browser: requests.Session) -> None:
    project.endpoint.accepted(title="a", service="web")
    page = browser.get(f"{project.url}/silences/new")
    form = form_with(page, "matchers")
    shown = submit(browser, page, form, matchers='service="web"\nseverity!="low"', preview="yes")
    assert shown.status_code == 200
    assert "would mute 1 open alert" in text_of(shown)
    assert "No active silences" in text_of(browser.get(f"{project.url}/silences"))
    entered = form_with(shown, "matchers")
    assert entered.value("matchers").splitlines() == ['service="web"', 'severity!="low"']
    for given, words in (
        ({"matchers": 'service="web'}, "Character 9: this double quote is not closed."),
        ({"matchers": ""}, "Enter at least one matcher"),
        ({"matchers": 'a!="b"'}, "match every alert without these labels"),
        ({"duration": "soon"}, "not a duration"),
        ({"duration": "99999999w"}, "too"),
        ({"duration": "91d"}, "at most"),
        ({"comment": "x" * 1001}, "at most 1000 characters"),
        ({"starts_at": "yesterday"}, "Not a valid"),
        ({"starts_at": "2020-01-01T00:00"}, "between now and one year"),
    ):
        answer = submit(browser, shown, entered, **given)
        assert answer.status_code == 422, given
        assert words in text_of(answer), given


@pytest.mark.long
def test_a_silence_is_extended_and_ended_on_its_page(
    project: Project, browser: requests.Session
) -> None:
    begin = (now() + timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M")
    page = browser.get(f"{project.url}/silences/new")
    form = form_with(page, "matchers")
    made = follow(browser, submit(browser, page, form, matchers="a=b", starts_at=begin))
    assert "Pending" in text_of(made)
    longer = follow(browser, submit(browser, made, form_to(made, "/extend"), duration="9h"))
    assert "The end of the silence was changed." in text_of(longer)
    refused = submit(browser, longer, form_to(longer, "/extend"), duration="1h")
    assert refused.status_code == 422
    assert "at least one minute" in text_of(refused)
    ended = follow(browser, submit(browser, longer, form_to(longer, "/expire")))
    assert "The silence has ended." in text_of(ended)
    again = follow(browser, submit(browser, longer, form_to(longer, "/expire")))
    assert "This silence has ended. Create a new silence." in text_of(again)
    assert 'a="b"' in text_of(browser.get(f"{project.url}/silences?state=expired"))
    assert browser.get(f"{project.url}/silences?state=over").status_code == 400


@pytest.mark.long
def test_text_of_senders_is_escaped_on_pages_of_silences(
    project: Project, browser: requests.Session
) -> None:
    evil = '"><script>alert(1)</script>{{ 7*7 }}'
    project.endpoint.accepted(title=evil, service="a\\b\nc", **{evil: evil})
    page = browser.get(f"{project.url}/silences/new?alert=1")
    made = follow(browser, submit(browser, page, form_with(page, "matchers"), comment=evil))
    for each in (page, made, browser.get(f"{project.url}/alerts/1")):
        assert "<script>alert" not in each.text
        assert "would mute 1 open alert" in text_of(page)
    assert "Silenced until" in text_of(browser.get(f"{project.url}/alerts/1"))


def test_an_alert_that_does_not_exist_cannot_be_silenced(
    project: Project, browser: requests.Session
) -> None:
    for number, status in (("7", 404), ("x", 400), (str(2**40), 200)):
        assert browser.get(f"{project.url}/silences/new?alert={number}").status_code == status
    assert browser.get(f"{project.url}/silences/7").status_code == 404


@pytest.mark.long
def test_maintainers_change_flap_detection(project: Project, browser: requests.Session) -> None:
    at = f"{project.url}/silences/flapping"
    shown = text_of(browser.get(at))
    assert "opens more than 5 times within 30 minutes" in shown
    assert "You need the Maintainer role to change these settings." in shown
    maintainer = browser_of(project.gatebell, project.path, Role.MAINTAINER)
    page = maintainer.get(at)
    form = form_with(page, "openings")
    refused = submit(maintainer, page, form, openings="0")
    assert refused.status_code == 422
    assert "Maximum number of openings must be a number from 1 to 100." in text_of(refused)
    saved = follow(maintainer, submit(maintainer, page, form, openings="3", enabled=None))
    assert "Settings saved." in text_of(saved)
    assert "Flap detection off" in text_of(browser.get(at))
    assert "Flap detection is off." in text_of(browser.get(f"{project.url}/silences"))


@pytest.mark.long
def test_the_page_of_an_alert_shows_flapping_and_continuation(
    project: Project, browser: requests.Session
) -> None:
    def fire(**fields: str) -> int:
        iid = project.endpoint.accepted(title="Down", fingerprint="x", **fields)["iid"]
        assert isinstance(iid, int)
        return iid

    project.caller(Role.MAINTAINER).done(
        "PUT", "/flap_settings", json={"reopen_minutes": 5, "holds_critical": True}
    )
    first = fire()
    page = browser.get(f"{project.url}/alerts/{first}")
    submit(browser, page, form_to(page, f"/{first}/status"), status="acknowledged")
    fire(end_time=now().isoformat())
    second = fire()
    me = person_for(project.gatebell, Role.DEVELOPER).username
    said = text_of(browser.get(f"{project.url}/alerts/{second}"))
    assert f"Continues alert #{first} , which @{me} acknowledged. This alert pages at" in said
    last = second
    for _ in range(6):
        fire(end_time=now().isoformat())
        last = fire()
    # A hold of all pages takes precedence over a hold of repeated pages.
    said = text_of(browser.get(f"{project.url}/alerts/{last}"))
    assert f"Continues alert #{first}" in said
    project.caller(Role.MAINTAINER).done("PUT", "/flap_settings", json={"reopen_minutes": 0})
    said = text_of(browser.get(f"{project.url}/alerts/{last}"))
    assert (
        "Flapping : opened 7 or more times within 30 minutes, so the same people are paged again "
        "at most every 10 minutes."
    ) in said
