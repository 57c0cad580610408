"""Saved filters of alert lists, and the page size."""

import re

import pytest
import requests
from flask import Flask

from domain.access.roles import Role
from tests.support.accounts.people import alice, make_user, signed_in
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import browser_of, give_role, person_for
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit
from web.pages.list_query import build_page_size_choice

pytestmark = pytest.mark.one_database("sqlite")

SAVED = re.compile(r'<li><a href="([^"]*)"><bdi>([^<]*)</bdi>')


def saved(page: requests.Response) -> dict[str, str]:
    """Return the saved filters that a list offers, by name."""
    panel = page.text[page.text.index("saved-panel") : page.text.index("list-bar")]
    return {name: url.replace("&amp;", "&") for url, name in SAVED.findall(panel)}


@pytest.mark.long
def test_a_filter_is_saved_shared_and_deleted(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    url = f"{gatebell.url}/{endpoint.project}/-/alerts"
    owner = signed_in(gatebell, alice(gatebell))
    page = owner.get(f"{url}?status=all&service=mail&sort=severity")
    save = form_to(page, "/alerts/filters")
    back = submit(owner, page, save, name="Mail <b>", shared="yes").headers["Location"]
    assert back.endswith("/-/alerts?status=all&service=mail&sort=severity")
    private = owner.get(f"{url}?severity=low")
    submit(owner, private, form_to(private, "/alerts/filters"), name="Mine")
    page = owner.get(url)
    assert saved(page) == {
        "Mail &lt;b&gt;": f"/{endpoint.project}/-/alerts?status=all&service=mail&sort=severity",
        "Mine": f"/{endpoint.project}/-/alerts?severity=low",
    }

    other = browser_of(gatebell, endpoint.project, Role.DEVELOPER)
    seen = other.get(url)
    assert list(saved(seen)) == ["Mail &lt;b&gt;"]
    assert f"shared by @{alice(gatebell).username}" in seen.text
    delete = form_to(page, "/delete")
    token = form_to(seen, "/page_size").value("csrf_token")
    refused = other.post(gatebell.url + delete.action, data={"csrf_token": token})
    assert refused.status_code == 403
    submit(owner, page, delete)
    assert list(saved(owner.get(url))) == ["Mine"]
    # The list of all projects does not offer it.
    assert saved(owner.get(f"{gatebell.url}/-/alerts")) == {}


@pytest.mark.long
def test_a_filter_with_an_invalid_name_is_not_saved(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, person_for(gatebell, Role.DEVELOPER))
    url = f"{gatebell.url}/-/alerts?severity=low"
    for name in ("", "  ", "x" * 101, "\x00"):
        page = browser.get(url)
        answer = submit(browser, page, form_to(page, "/alerts/filters"), name=name)
        told = browser.get(gatebell.url + answer.headers["Location"])
        if name != "\x00":
            assert "Enter a name of at most 100 characters." in told.text
            assert saved(told) == {}


@pytest.mark.long
def test_the_page_size_is_stored_with_the_account(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.post_json([{"title": f"alert {number}"} for number in range(45)])
    person = make_user(gatebell)  # A new user has no other alerts.
    give_role(gatebell, endpoint.project, person, Role.OWNER)
    browser = signed_in(gatebell, person)
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts")
    assert "1\u201320 of 45" in page.text
    second = re.search(r'href="([^"]*)" rel="next"', page.text)
    assert second is not None
    following = browser.get(gatebell.url + second[1].replace("&amp;", "&")).text
    assert "21\u201340 of 45" in following
    try:
        submit(browser, page, form_to(page, "/page_size"), size="50")
        for path in (f"/{endpoint.project}/-/alerts", "/-/alerts"):
            assert "1\u201345 of 45" in browser.get(gatebell.url + path).text
        assert submit(browser, page, form_to(page, "/page_size"), size="7").status_code == 422
        # Every long list offers the same choice, and returns to its first page.
        for number in range(21):
            make_token(gatebell, person, name=f"t{number}")
        tokens = f"{gatebell.url}/-/user_settings/access_tokens?state=active"
        submit(browser, page, form_to(page, "/page_size"), size="20")
        short = browser.get(tokens)
        older = re.search(r'href="([^"]*)" rel="next"', short.text)
        assert older is not None
        last = browser.get(gatebell.url + older[1].replace("&amp;", "&"))
        back = submit(browser, last, form_to(last, "/page_size"), size="100")
        assert gatebell.url + back.headers["Location"] == tokens
        whole = browser.get(tokens)
        assert 'rel="next"' not in whole.text
        # The choice is still offered when the list fits on one page.
        submit(browser, whole, form_to(whole, "/page_size"), size="20")
        assert 'rel="next"' in browser.get(tokens).text
    finally:
        submit(browser, page, form_to(page, "/page_size"), size="20")


def test_anonymous_visitors_are_offered_no_page_size(app: Flask) -> None:
    with app.test_request_context("/groups"):
        assert build_page_size_choice() is None
    elsewhere = app.test_client().post("/-/user_settings/page_size?next=//evil.example")
    assert elsewhere.status_code in {302, 400}
    assert "evil" not in elsewhere.headers.get("Location", "").partition("?")[0]
