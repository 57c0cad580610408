"""Texts of pages that must be true for the reader and must not name missing features."""

import re
from pathlib import Path

import pytest

from domain.access.roles import Role
from domain.access.scopes import SCOPES
from tests.support.accounts.administration import get_administrator_browser
from tests.support.accounts.people import make_project, make_user, signed_in
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")

ROOT = Path(__file__).parents[3]


@pytest.mark.long
def test_users_without_access_to_alerts_do_not_see_that_there_are_none(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="a")
    reporter = make_user(gatebell, name="reporter")
    give_role(gatebell, endpoint.project, reporter, Role.REPORTER)
    browser = signed_in(gatebell, reporter)
    for path in ("", endpoint.project):
        page = browser.get(f"{gatebell.url}/{path}").text
        assert "You need the Developer role to see" in page
        assert not re.search(r"no open alert|no alert|nothing is waiting", page, re.IGNORECASE)
    for path in ("", "groups"):
        row = browser.get(f"{gatebell.url}/{path}").text.partition(endpoint.project)[2]
        cell = row.partition('data-label="Open alerts">')[2].partition("</td>")[0]
        assert "none" not in cell
    developed = make_project(gatebell, reporter)
    page = browser.get(f"{gatebell.url}/").text
    assert developed in page
    assert "You need this role to see the alerts of your other projects." in page


def test_a_warning_does_not_contradict_the_heading(gatebell: LiveGatebell) -> None:
    page = get_administrator_browser(gatebell).get(f"{gatebell.url}/admin").text
    heading = page.partition("<h1>")[2].partition("</h1>")[0]
    warnings = page.count('class="notice warn"') + page.count('class="notice bad"')
    assert warnings, "a service of tests has administrators without a second factor"
    assert not re.search(r"well|running|fine", heading), heading


def test_a_public_application_shows_no_client_secret(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    browser = signed_in(gatebell, owner)
    page = browser.get(f"{gatebell.url}/-/user_settings/applications/new")
    answer = submit(
        browser,
        page,
        form_with(page, "redirect_uris"),
        name="Phone",
        redirect_uris="https://phone.example/callback",
        scopes=["read_user"],
        confidential=None,
    )
    assert answer.status_code == 302, answer.text
    shown = browser.get(gatebell.url + answer.headers["Location"])
    assert "Application ID" in shown.text
    assert "A public application has no client secret." in shown.text
    for words in ("Copy the client secret", "gba-", "gbs-", "Renew"):
        assert words not in shown.text
    made = gatebell.cli(
        *("applications", "create", "Phone", "--owner", owner.username, "--public"),
        *("--redirect-uri", "https://phone.example/callback", "--scopes", "read_user"),
    )
    assert (made["confidential"], made["secret"]) == (False, None)


@pytest.mark.parametrize("words", ["runner", "pipeline"])
def test_pages_and_scopes_do_not_name_missing_features(words: str) -> None:
    texts = {scope.name: f"{scope.title} {scope.description}" for scope in SCOPES}
    for file in (ROOT / "templates").rglob("*.html"):
        texts[file.name] = file.read_text(encoding="utf-8")
    assert [name for name, text in texts.items() if words in text.lower()] == []


def test_a_form_with_one_field_shows_its_error_once(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, make_user(gatebell))
    for path, field in (("/oauth/device", "user_code"), ("/groups/new", "path")):
        page = browser.get(gatebell.url + path)
        answer = submit(browser, page, form_with(page, field), **{field: "-"})
        assert answer.status_code == 422
        sentences = re.findall(r"Error: </span>([^<]+)</span>", answer.text)
        assert len(sentences) == 1
        assert answer.text.count(sentences[0]) == 1
        assert "There is a problem" not in answer.text
        assert "autofocus" in answer.text
        assert "<title>Error:" in answer.text


def test_a_missing_page_shows_its_error_once(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, make_user(gatebell))
    stranger = signed_in(gatebell, make_user(gatebell, name="stranger"))
    answer = stranger.get(f"{gatebell.url}/{project}/-/alerts")
    assert answer.status_code == 404
    assert answer.text.count("or you do not have access") == 1


def test_a_form_with_several_fields_summarizes_its_errors(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, make_user(gatebell))
    page = browser.get(f"{gatebell.url}/-/user_settings/applications/new")
    answer = submit(browser, page, form_with(page, "redirect_uris"), name="", redirect_uris="x")
    assert "There is a problem" in answer.text


def test_the_logo_exists(gatebell: LiveGatebell) -> None:
    named = re.findall(r'src="(static/[^"]+)"', (ROOT / "README.md").read_text(encoding="utf-8"))
    assert "static/logo.svg" in named
    assert all((ROOT / name).is_file() for name in named)
    page = gatebell.http().get(f"{gatebell.url}/users/sign_in").text
    icon = re.search(r'<link rel="icon"[^>]* href="([^"]+logo\.svg[^"]*)"', page)
    assert icon is not None
    answer = gatebell.http().get(gatebell.url + icon[1])
    assert answer.headers["Content-Type"].startswith("image/svg+xml")
    assert "prefers-color-scheme: dark" in answer.text
