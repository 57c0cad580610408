"""The pages of maintenance windows."""

import pytest
import requests

from domain.access.roles import Role
from tests.http.paging.silences.conftest import Project
from tests.http.paging.silences.test_silence_pages import follow, text_of
from tests.support.accounts.team import browser_of
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = [pytest.mark.spec("J1"), pytest.mark.both_databases]

UPGRADE = {
    "name": "Upgrade",
    "starts_at": "2030-01-08T22:00",
    "time_zone": "europe/berlin",
    "duration": "8h",
}


@pytest.fixture
def browser(project: Project) -> requests.Session:
    return browser_of(project.gatebell, project.path, Role.MAINTAINER)


@pytest.mark.long
def test_a_window_is_created_changed_and_deleted(
    project: Project, browser: requests.Session
) -> None:
    page = browser.get(f"{project.url}/maintenance_windows/new")
    listed = follow(browser, submit(browser, page, form_with(page, "repeats"), **UPGRADE))
    said = text_of(listed)
    assert "Maintenance window “Upgrade” created." in said
    assert "Tue 8 Jan 2030 22:00 \u2013 Wed 9 Jan 2030 06:00" in said
    address = form_to(listed, "/delete").action.removesuffix("/delete")
    edit = browser.get(f"{project.gatebell.url}{address}/edit")
    form = form_with(edit, "repeats")
    assert form.value("time_zone") == "Europe/Berlin"
    weekly = follow(
        browser,
        submit(
            *(browser, edit, form),
            repeats="weekly",
            weekdays=["SA", "SU"],
            interval="2",
            severities=["high"],
            environments="production\nstaging/*",
            labels='team="db"',
        ),
    )
    said = text_of(weekly)
    assert "every 2 weeks on Saturday and Sunday" in said
    assert "Sat 12 Jan 2030 22:00" in said
    assert "environments: production, staging/*" in said
    deleted = follow(browser, submit(browser, weekly, form_to(weekly, "/delete")))
    assert "Maintenance window “Upgrade” deleted." in text_of(deleted)
    assert browser.get(f"{project.gatebell.url}{address}/edit").status_code == 404


@pytest.mark.long
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"repeats": "daily", "duration": "2h", "until": "2030-02-01"},
            "every day, until 2030-02-01",
        ),
        ({"repeats": "monthly_day"}, "every month on day 8"),
        (
            {"repeats": "monthly_weekday", "interval": "3"},
            "every 3 months on the second Tuesday",
        ),
        (
            {"repeats": "rule", "rule": "FREQ=MONTHLY;BYDAY=-1SU", "duration": "2h"},
            "every month on the last Sunday",
        ),
    ],
)
@pytest.mark.one_database("sqlite")
def test_the_form_keeps_each_kind_of_recurrence(
    project: Project, browser: requests.Session, fields: dict[str, str], words: str
) -> None:
    page = browser.get(f"{project.url}/maintenance_windows/new")
    listed = follow(
        browser, submit(browser, page, form_with(page, "repeats"), **{**UPGRADE, **fields})
    )
    assert words in text_of(listed)
    address = form_to(listed, "/delete").action.removesuffix("/delete")
    edit = browser.get(f"{project.gatebell.url}{address}/edit")
    form = form_with(edit, "repeats")
    assert {name: form.value(name) for name in fields} == fields
    follow(browser, submit(browser, edit, form))


@pytest.mark.long
@pytest.mark.one_database("postgres")
def test_the_form_shows_errors_of_a_window(project: Project, browser: requests.Session) -> None:
    page = browser.get(f"{project.url}/maintenance_windows/new")
    form = form_with(page, "repeats")
    for given, words in (
        ({"name": ""}, "Enter a name"),
        ({"name": "  "}, "Enter a name"),
        ({"starts_at": "tonight"}, "Not a valid"),
        ({"starts_at": "2020-01-01T00:00"}, "already ended"),
        ({"time_zone": "Mars"}, "Choose a time zone"),
        ({"duration": "8d"}, "seven days"),
        ({"duration": "x"}, "not a duration"),
        ({"repeats": "daily", "duration": "25h"}, "until it recurs"),
        ({"repeats": "daily", "interval": "0"}, "Enter a number from 1 to 99."),
        ({"repeats": "rule"}, "The rule must consist of unique parts"),
        ({"repeats": "sometimes"}, "Not a valid choice"),
        ({"repeats": "weekly", "weekdays": "XX"}, "not a valid choice"),
        ({"labels": 'a="'}, "Character 3"),
        ({"repeats": "daily", "until": "soon"}, "Not a valid date"),
    ):
        answer = submit(browser, page, form, **{**UPGRADE, **given})
        assert answer.status_code == 422, given
        assert words in text_of(answer), given


@pytest.mark.one_database("postgres")
def test_developers_see_windows_and_cannot_create_them(
    project: Project, browser: requests.Session
) -> None:
    page = browser.get(f"{project.url}/maintenance_windows/new")
    follow(browser, submit(browser, page, form_with(page, "repeats"), **UPGRADE))
    developer = browser_of(project.gatebell, project.path, Role.DEVELOPER)
    listed = developer.get(f"{project.url}/maintenance_windows")
    assert "Upgrade" in text_of(listed)
    assert "/delete" not in listed.text
    assert developer.get(f"{project.url}/maintenance_windows/new").status_code == 403
