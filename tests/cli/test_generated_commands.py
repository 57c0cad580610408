"""Tests that commands generated from domain actions behave like the API."""

import json
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import select

from models import AuditEvent
from tests.support.service.commands import operate
from web.commands import action_commands
from web.extensions import db

pytestmark = pytest.mark.one_database("sqlite")
WINDOW = ("--name", "Upgrade", "--starts", "2030-01-01T00:00", "--for", "1h")
WEB = ("--matcher", 'service="web"', "--for", "2h")


@pytest.fixture
def shop(app: Flask) -> str:
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")
    return "acme/shop"


def failure(app: Flask, *arguments: str) -> dict[str, Any]:
    """Return the error of a command that fails."""
    done = app.test_cli_runner().invoke(args=arguments)
    assert done.exit_code in {1, 2}, done.output
    found: dict[str, Any] = json.loads(done.stderr)
    return found


@pytest.mark.long
def test_an_archived_project_rejects_changes_but_can_be_read(app: Flask, shop: str) -> None:
    made = operate(app, "silences", "create", shop, *WEB)
    operate(app, "projects", "archive", shop)
    for arguments in (
        ("silences", "create", shop, *WEB),
        ("silences", "expire", shop, str(made["id"])),
        ("flap-settings", "set", shop, "--off"),
        ("maintenance-windows", "create", shop, *WINDOW),
        ("integrations", "create", shop, "--type", "http"),
    ):
        assert "is archived" in failure(app, *arguments)["error"], arguments
    assert operate(app, "silences", "show", shop, str(made["id"])) == made


@pytest.mark.long
def test_a_list_is_printed_completely(app: Flask, shop: str) -> None:
    for number in range(103):
        operate(app, "silences", "create", shop, "--matcher", f"n={number}", "--for", "1h")
    listed = operate(app, "silences", "list", shop)
    assert listed["total"] == len(listed["silences"]) == 103
    assert len({each["id"] for each in listed["silences"]}) == 103
    assert operate(app, "silences", "list", shop, "--state", "expired")["total"] == 0


@pytest.mark.long
def test_a_list_without_page_numbers_can_be_read_with_a_cursor(
    app: Flask, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = operate(app, "integrations", "create", shop, "--type", "http")
    for title in ("First", "Second", "Third"):
        path, key = endpoint["url"].removeprefix("http://localhost"), endpoint["key"]
        headers = {"Authorization": f"Bearer {key}"}
        assert (
            app.test_client().post(path, json={"title": title}, headers=headers).status_code == 200
        )
    for limit in ("_MAX_LISTED", "_PAGE_SIZE"):
        monkeypatch.setattr(action_commands, limit, 2)
    newest = operate(app, "deliveries", "list", shop, str(endpoint["id"]))
    oldest = operate(
        app, *("deliveries", "list", shop, str(endpoint["id"])), "--cursor", newest["next_cursor"]
    )
    assert [len(each["deliveries"]) for each in (newest, oldest)] == [2, 1]
    assert newest["deliveries"][-1]["id"] > oldest["deliveries"][0]["id"]
    assert (oldest["total"], "next_cursor" in oldest) == (1, False)


@pytest.mark.long
def test_an_unchanged_integration_causes_no_event(app: Flask, shop: str) -> None:
    made = operate(app, "integrations", "create", shop, "--type", "http", "--name", "Nagios")
    of_it = (shop, str(made["id"]))
    operate(app, "integrations", "change", *of_it, "--resolve-after-minutes", "5")
    operate(app, "integrations", "change", *of_it, "--name", "Nagios", "--active")
    changed = operate(app, "integrations", "change", *of_it, "--resolve-after-minutes", "0")
    assert changed["resolve_after_minutes"] is None
    with app.app_context():
        is_change = AuditEvent.kind == "integration.changed"
        events = db.session.scalars(select(AuditEvent).where(is_change)).all()
        assert [each.details["change"] for each in events] == ["created", "changed", "changed"]


@pytest.mark.long
def test_options_are_the_fields_of_the_body(app: Flask, shop: str) -> None:
    told = app.test_cli_runner().invoke(args=("silences", "create", "--help")).output
    for word in ("--matcher", "--for", "--starts", "--ends-at", "--comment", "PROJECT"):
        assert word in told, word
    assert "`" not in told
    helped = app.test_cli_runner().invoke(args=("maintenance-windows", "create", "-h")).output
    assert "[default: UTC]" in helped
    assert "--per-page" not in app.test_cli_runner().invoke(args=("silences", "list", "-h")).output
    assert "Missing option" in failure(app, "silences", "create", shop)["error"]
    assert (
        "`ends_at` and `duration` cannot be combined."
        in failure(app, "silences", "create", shop, *WEB, "--ends-at", "2030-01-01T00:00Z")["error"]
    )
    assert "is not one of" in failure(app, "silences", "list", shop, "--state", "odd")["error"]


def test_a_flag_can_be_on_off_or_unchanged(app: Flask, shop: str) -> None:
    assert operate(app, "flap-settings", "set", shop, "--off")["enabled"] is False
    assert operate(app, "flap-settings", "set", shop, "--openings", "9")["enabled"] is False
    assert operate(app, "flap-settings", "set", shop, "--on")["enabled"] is True


def test_each_change_causes_one_event_without_free_text(app: Flask, shop: str) -> None:
    made = operate(app, "silences", "create", shop, *WEB, "--comment", "the secret plan")
    again = ("silences", "change", shop, str(made["id"]), "--comment", "the secret plan")
    operate(app, *again)  # The command changes nothing.
    with app.app_context():
        found = db.session.scalars(select(AuditEvent).where(AuditEvent.kind.like("silence.%")))
        events = [(each.kind, each.actor_name, each.details) for each in found]
    assert [kind for kind, _, _ in events] == ["silence.created"]
    assert (events[0][1], events[0][2]["by"]) == ("", "command")
    assert "secret plan" not in str(events)


def test_an_error_names_the_missing_option(app: Flask, shop: str) -> None:
    for arguments, missing in (
        (("audit-streams", "create"), "'--url'"),
        (("webhooks", "create", shop), "'--url'"),
        (("heartbeats", "create", shop), "'--name'"),
        (("alert-routes", "create", shop, "--name", "all"), "'--policy' or '--nobody'"),
    ):
        done = app.test_cli_runner().invoke(args=arguments)
        assert done.exit_code == 2, arguments
        assert json.loads(done.stderr)["error"] == f"Missing option {missing}."
