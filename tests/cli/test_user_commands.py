"""Tests of `gatebell users` and `gatebell settings`."""

import pytest
import requests

from tests.support.accounts.administration import find_last_event, read_stored_settings
from tests.support.accounts.people import Person, make_user, sign_in, unique
from tests.support.accounts.personal_tokens import make_token
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell


@pytest.fixture
def charlie(live_sqlite: LiveGatebell) -> Person:
    """Create a user that tests can change."""
    return make_user(live_sqlite, name="charlie")


def whoami(gatebell: LiveGatebell, token: str) -> int:
    headers = {"PRIVATE-TOKEN": token}
    return requests.get(f"{gatebell.url}/api/v4/user", headers=headers, timeout=30).status_code


def test_a_user_can_be_locked_and_unlocked(live_sqlite: LiveGatebell, charlie: Person) -> None:
    token = make_token(live_sqlite, charlie).clear
    assert live_sqlite.cli("users", "lock", charlie.username)["state"] == "blocked"
    assert whoami(live_sqlite, token) == 401
    event = find_last_event(live_sqlite, charlie.username)
    assert (event.kind, event.details["by"]) == ("user.locked", "command")
    assert live_sqlite.cli("users", "unlock", charlie.email)["state"] == "active"
    assert whoami(live_sqlite, token) == 200


def test_a_command_without_a_change_causes_no_event(
    live_sqlite: LiveGatebell, charlie: Person
) -> None:
    for _ in range(2):
        live_sqlite.cli("users", "lock", charlie.username)
        live_sqlite.cli("users", "change", charlie.username, "--admin")
    events = [each.kind for each in list_events_with_subject(live_sqlite, charlie.username)]
    assert events.count("user.locked") == events.count("user.changed") == 1
    assert live_sqlite.cli("users", "show", charlie.username)["is_admin"]


@pytest.mark.long
def test_a_password_is_reset_and_printed(live_sqlite: LiveGatebell, charlie: Person) -> None:
    answer = live_sqlite.cli("users", "reset-password", charlie.username)
    helped = Person(username=charlie.username, email="", password=answer["password"])
    page = sign_in(live_sqlite, helped).get(f"{live_sqlite.url}/groups")
    assert page.url.endswith("/-/user_settings/security")


def test_the_list_of_users_is_paginated(live_sqlite: LiveGatebell, charlie: Person) -> None:
    found = live_sqlite.cli("users", "list", "--search", charlie.username.upper())
    (only,) = found["users"]
    assert (only["username"], only["state"], only["bot"]) == (charlie.username, "active", False)
    assert (only["two_factor_enabled"], found["next"]) == (False, None)
    below = live_sqlite.cli(
        "users", "list", "--search", charlie.username, "--before", str(only["id"])
    )
    assert below["users"] == []


@pytest.mark.long
def test_a_setting_can_be_changed_listed_and_reset(live_sqlite: LiveGatebell) -> None:
    assert live_sqlite.cli("settings", "set", "PAGE_SIZE", "33")["value"] == 33
    changed = live_sqlite.cli("settings", "list", "--changed")["settings"]
    assert {"PAGE_SIZE": "33"}.items() <= {each["name"]: each["value"] for each in changed}.items()
    event = find_last_event(live_sqlite, "page_size")
    assert event.details == {"old": 20, "new": 33, "by": "command"}
    assert live_sqlite.cli("settings", "reset", "page_size") == {
        "name": "PAGE_SIZE",
        "value": 20,
    }
    assert "page_size" not in read_stored_settings(live_sqlite)
    assert live_sqlite.run_cli("settings", "reset", "port").returncode == 1


def test_an_instance_wide_application_has_no_owner(
    live_sqlite: LiveGatebell, charlie: Person
) -> None:
    made = live_sqlite.cli(
        *("applications", "create", unique("Wiki"), "--owner", charlie.username),
        *("--redirect-uri", "https://wiki.example/cb", "--scopes", "openid", "--instance-wide"),
    )
    address = f"{live_sqlite.url}/-/user_settings/applications/{made['id']}"
    assert sign_in(live_sqlite, charlie).get(address).status_code == 404
