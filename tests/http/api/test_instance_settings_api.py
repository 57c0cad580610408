"""Tests of `/api/v4/application`: settings of the instance, and the appearance of its pages."""

from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any

import pytest
import requests

from tests.support.accounts.administration import (
    find_last_event,
    forget_settings,
    get_shared_administrator,
    read_stored_settings,
)
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import bob, make_user
from tests.support.accounts.personal_tokens import make_token
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

pytestmark = pytest.mark.one_database("sqlite")

SETTINGS, APPEARANCE = "/application/settings", "/application/appearance"
#: All processes notice a change within a second, but a busy machine can be slower.
A_WHILE = 10


@pytest.fixture(autouse=True)
def reset_settings(gatebell: LiveGatebell) -> Iterator[None]:
    """Reset the settings of the shared service before and after each test."""
    forget_settings(gatebell)
    yield
    forget_settings(gatebell)


def call(gatebell: LiveGatebell, method: str, path: str, **body: Any) -> requests.Response:
    """Send a request as the administrator."""
    return api_caller(gatebell, get_shared_administrator(gatebell))(method, path, json=body or None)


def page_with(gatebell: LiveGatebell, text: str, path: str = "/users/sign_in") -> str:
    """Return a page as soon as it contains a text."""
    until = monotonic() + A_WHILE
    while True:
        page = gatebell.http().get(f"{gatebell.url}{path}").text
        if text in page:
            return page
        assert monotonic() < until, page
        sleep(0.1)


@pytest.mark.both_databases
def test_settings_can_be_read_and_changed_by_their_gitlab_names(gatebell: LiveGatebell) -> None:
    before = call(gatebell, "GET", SETTINGS).json()
    assert before["minimum_password_length"] == 12
    assert before["max_personal_access_token_lifetime"] == 365
    assert before["password_authentication_enabled_for_git"] is True
    assert not {"secret_key", "database_url", "mail_url", "title"} & before.keys()

    answer = call(
        gatebell, "PUT", SETTINGS, minimum_password_length=14, search_rate_limit="7", unknown=1
    )

    assert answer.status_code == 200, answer.text
    changed = {"minimum_password_length": 14, "search_rate_limit": 7}
    assert answer.json() == {**before, **changed}
    assert call(gatebell, "GET", SETTINGS).json() == answer.json()
    assert read_stored_settings(gatebell) == {"password_min_length": "14", "search_rate_limit": "7"}
    assert find_last_event(gatebell, "password_min_length").details == {"old": 12, "new": 14}


def test_a_setting_with_its_current_value_is_not_a_change(gatebell: LiveGatebell) -> None:
    call(gatebell, "PUT", SETTINGS, page_size=33)
    forget_settings(gatebell)
    event = find_last_event(gatebell, "page_size").id
    for body in ({}, {"page_size": 20, "tier": None}, {"page_size": "20"}):
        assert call(gatebell, "PUT", SETTINGS, **body).status_code == 200
    assert read_stored_settings(gatebell) == {}
    assert find_last_event(gatebell, "page_size").id == event


def test_all_invalid_settings_are_named_and_nothing_is_stored(gatebell: LiveGatebell) -> None:
    answer = call(
        gatebell,
        "PUT",
        SETTINGS,
        minimum_password_length=3,
        release="18",
        instance_name="",
        api_rate_limit="many",
        page_size=30,
    )
    assert answer.status_code == 400
    named = {each["field"] for each in answer.json()["errors"]}
    assert named == {"minimum_password_length", "release", "instance_name", "api_rate_limit"}
    assert read_stored_settings(gatebell) == {}


WRONG: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("tier", ([], {}, "gold", 1, True)),
    ("search_rate_limit", ([], "many", -1, 10**30, 1.5)),
    ("generic_alert_fingerprinting", ([], "maybe", 2)),
    ("instance_name", ({}, "\x00", "a\nb", 7)),
)


@pytest.mark.long
def test_a_value_of_a_wrong_type_is_rejected(gatebell: LiveGatebell) -> None:
    for name, values in WRONG:
        for value in values:
            answer = call(gatebell, "PUT", SETTINGS, **{name: value})
            assert answer.status_code == 400, (name, value)
            assert answer.json()["errors"][0]["field"] == name


@pytest.mark.long
def test_searches_are_limited_per_user(gatebell: LiveGatebell) -> None:
    eager, other = make_user(gatebell), bob(gatebell)
    tokens = {each: make_token(gatebell, each).clear for each in (eager, other)}

    def asked(token: str, query: str) -> int:
        return (
            machine(gatebell)
            .get(f"{gatebell.url}/api/v4/users?{query}", headers={"PRIVATE-TOKEN": token})
            .status_code
        )

    with changed_settings(gatebell, search_rate_limit="1"):
        # Each web process counts for itself, and a new minute can start in the meantime.
        until = monotonic() + A_WHILE
        while asked(tokens[eager], "search=alice") != 429:
            assert monotonic() < until
        assert asked(tokens[eager], f"username={other.username}") == 200
        assert asked(tokens[other], "per_page=1") == 200


@pytest.mark.both_databases
def test_the_sign_in_page_shows_title_and_description_safely(gatebell: LiveGatebell) -> None:
    description = (
        "For **all** of Acme:\n- ask [Eve](https://acme.example/eve)\n"
        "- or <script>alert(1)</script>\n\n"
        "[x](javascript:alert(1)) ![y](https://evil.example/y.png)\n\n# no heading"
    )
    answer = call(gatebell, "PUT", APPEARANCE, title="Welcome <b>", description=description)

    assert answer.status_code == 200
    assert answer.json() == {
        "title": "Welcome <b>",
        "description": description,
        "header_message": "",
        "footer_message": "",
    }
    page = page_with(gatebell, "Welcome &lt;b&gt;")
    assert "<strong>all</strong>" in page
    assert '<a href="https://acme.example/eve" rel="noopener noreferrer">Eve</a>' in page
    for harm in ("<script>alert", 'href="javascript', "<img src", "<h1>no heading"):
        assert harm not in page
    call(gatebell, "PUT", APPEARANCE, title="", description="")
    assert call(gatebell, "GET", APPEARANCE).json()["description"] == ""


@pytest.mark.long
def test_messages_are_shown_on_every_page(gatebell: LiveGatebell) -> None:
    call(gatebell, "PUT", APPEARANCE, header_message="Down on Sunday <i>", footer_message="Staging")

    page = page_with(gatebell, "Down on Sunday &lt;i&gt;")
    assert "Staging" in page
    assert "Page not found" in page_with(gatebell, "Down on Sunday &lt;i&gt;", "/-/nothing")
    refused = call(gatebell, "PUT", APPEARANCE, header_message="two\nlines", title="x" * 201)
    assert [each["field"] for each in refused.json()["errors"]] == ["title", "header_message"]
