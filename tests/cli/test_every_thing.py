"""Tests that every kind of object has commands to list, show, create, change and delete it."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from flask import Flask

from tests.support.alerts.tool_messages import load_messages
from tests.support.service.commands import operate
from web.commands import gatebell

#: Commands that a kind of object does not have, with the reason.
_WITHOUT: Mapping[str, frozenset[str]] = {
    # Monitoring systems send alerts.
    "alerts": frozenset({"create"}),
    # Members are added and removed instead.
    "members": frozenset({"create", "delete"}),
    # Deliveries are received reports: a replay is a new delivery, and old ones are pruned.
    "deliveries": frozenset({"create", "change", "delete"}),
    # Tokens cannot be changed, since another value is another token.
    "tokens": frozenset({"change", "delete"}),
    # Silences are kept for the record, and expire.
    "silences": frozenset({"delete"}),
}
_KINDS = (
    *("alert-routes", "alerts", "applications", "audit-streams", "channels", "contacts"),
    *("deliveries", "escalations", "groups", "heartbeats", "incidents", "integrations"),
    *(
        "maintenance-windows",
        "members",
        "projects",
        "schedules",
        "silences",
        "tokens",
        "users",
        "webhooks",
    ),
)
_VERBS = frozenset({"list", "show", "create", "change", "delete"})


@pytest.mark.long
def test_every_kind_of_object_has_the_expected_commands() -> None:
    for kind in _KINDS:
        group = gatebell.get_command(None, kind)  # type: ignore[arg-type]
        missing = _VERBS - set(group.commands)  # type: ignore[union-attr]
        assert missing == _WITHOUT.get(kind, frozenset()), kind


def made(app: Flask) -> dict[str, Any]:
    operate(app, "users", "create", "alice", "--email", "alice@people.example")
    operate(app, "groups", "create", "acme", "--owner", "alice")
    return operate(app, "projects", "create", "acme/shop")


def named(things: list[dict[str, Any]]) -> list[str]:
    return [each["name"] for each in things]


@pytest.mark.long
def test_groups_projects_members_and_users_can_be_listed_and_shown(app: Flask) -> None:
    made(app)
    operate(app, "groups", "create", "acme/tools")
    listed = operate(app, "groups", "list")["groups"]
    assert [each["full_path"] for each in listed] == ["acme", "acme/tools"]
    assert operate(app, "groups", "show", "acme") == listed[0]
    (project,) = operate(app, "projects", "list", "--group", "acme")["projects"]
    shown = operate(app, "projects", "show", "acme/shop")
    assert (project["path_with_namespace"], shown["visibility"]) == ("acme/shop", "private")
    assert operate(app, "projects", "list")["projects"] == [shown] == [project]
    (member,) = operate(app, "members", "list", "acme/shop")["members"]
    assert (member["username"], member["access_level"]) == ("alice", 50)
    assert operate(app, "members", "show", "acme/shop", "alice") == member
    operate(app, "users", "create", "bob", "--email", "bob@people.example")
    refused = app.test_cli_runner().invoke(args=["members", "show", "acme/shop", "bob"])
    assert json.loads(refused.stderr) == {"error": "Member not found."}
    assert operate(app, "users", "show", "alice")["email"] == "alice@people.example"


@pytest.mark.long
def test_applications_can_be_changed_renewed_and_deleted(app: Flask) -> None:
    made(app)
    board = ("create", "Board", "--owner", "alice", "--scopes", "read_user api")
    new = operate(app, "applications", *board, "--redirect-uri", "https://board.example/cb")
    number = str(new["id"])
    change = ("--name", "Deploy board", "--scopes", "read_user", "--require-pkce")
    changed = operate(app, "applications", "change", number, *change)
    assert (changed["name"], changed["scopes"]) == ("Deploy board", ["read_user"])
    assert changed["redirect_uris"] == ["https://board.example/cb"]
    renewed = operate(app, "applications", "renew-secret", number)
    assert renewed["secret"] != new["secret"]
    assert named(operate(app, "applications", "list", "--owner", "alice")["applications"]) == [
        "Deploy board"
    ]
    assert operate(app, "applications", "list")["applications"] == []
    operate(app, "applications", "delete", number)
    assert app.test_cli_runner().invoke(args=["applications", "show", number]).exit_code == 1


@pytest.mark.long
def test_integration_keys_can_be_reset_and_alert_statuses_changed(app: Flask) -> None:
    made(app)
    nagios = ("create", "acme/shop", "--type", "http", "--name", "Nagios")
    endpoint = operate(app, "integrations", *nagios)
    of_it = ("acme/shop", str(endpoint["id"]))

    def status_with(key: str, title: str) -> int:
        return app.test_client().post(
            endpoint["url"].removeprefix("http://localhost"),
            json={"title": title},
            headers={"Authorization": f"Bearer {key}"},
        ).status_code  # fmt: skip

    reset = operate(app, "integrations", "reset-key", *of_it, "--overlap", "now")
    assert status_with(endpoint["key"], "Old") == 401
    assert status_with(reset["key"], "New") == 200
    assert operate(app, "integrations", "change", *of_it, "--inactive")["active"] is False
    assert operate(app, "integrations", "show", *of_it)["last_outcome"]
    assert named(operate(app, "integrations", "list", "acme/shop")["integrations"]) == ["Nagios"]

    (alert,) = operate(app, "alerts", "list", "acme/shop")["alerts"]
    resolved = operate(app, "alerts", "change", "acme/shop", "1", "--status", "resolved")
    assert (alert["title"], resolved["status"]) == ("New", "resolved")
    assert operate(app, "alerts", "list", "acme/shop")["alerts"] == []
    operate(app, "alerts", "delete", "acme/shop", "1")
    refused = app.test_cli_runner().invoke(args=["alerts", "show", "acme/shop", "1"])
    assert "not found" in json.loads(refused.stderr)["error"]
    assert operate(app, "integrations", "delete", *of_it)["deleted"] is True


@pytest.mark.long
def test_a_link_to_an_on_call_tool_has_no_url_and_no_key(app: Flask) -> None:
    made(app)
    pager = ("create", "acme/shop", "--type", "external", "--name", "Pager")
    link = operate(app, "integrations", *pager, "--api-url", "https://pager.example")
    assert (link["url"], link["key"], link["endpoint_identifier"]) == (None, None, None)
    of_it = ("acme/shop", str(link["id"]))
    shown = operate(app, "integrations", "show", *of_it)
    assert (shown["url"], shown["api_url"]) == (None, "https://pager.example")
    for arguments in (("integrations", "reset-key", *of_it), ("deliveries", "list", *of_it)):
        refused = app.test_cli_runner().invoke(args=list(arguments))
        assert "does not receive alerts" in json.loads(refused.stderr)["error"]


def test_the_tool_of_a_payload_is_recognized(app: Flask) -> None:
    sample = load_messages("uptime_kuma").sample
    ask = partial(app.test_cli_runner().invoke, args=["integrations", "recognize", "-"])
    found = json.loads(ask(input=sample).stdout)
    assert (found["tool"], found["alert"]["title"]) == ("Uptime Kuma", "Shop")
    for wrong, said in ((b"{", "not JSON"), (b"\xff", "not UTF-8"), (b" " * 2**17, "64 KiB")):
        refused = ask(input=wrong)
        assert (refused.exit_code, said in refused.stderr) == (1, True), refused.stderr


@pytest.mark.long
def test_rejected_deliveries_can_be_replayed_after_their_cause_is_fixed(app: Flask) -> None:
    made(app)
    words = ("create", "acme/shop", "--type", "http", "--name", "Nagios")
    endpoint = operate(app, "integrations", *words)
    of_it = ("acme/shop", str(endpoint["id"]))

    def post(title: str) -> int:
        return app.test_client().post(
            endpoint["url"].removeprefix("http://localhost"),
            json={"title": title},
            headers={"Authorization": f"Bearer {endpoint['key']}"},
        ).status_code  # fmt: skip

    operate(app, "integrations", "change", *of_it, "--inactive")
    assert [post("One"), post("Two")] == [403, 403]

    def fails(*words: str) -> str:
        done = app.test_cli_runner().invoke(args=["deliveries", *words])
        assert done.exit_code == 1
        error: str = json.loads(done.stderr)["error"]
        return error

    assert "is turned off" in fails("replay", *of_it, "--last", "1h")
    operate(app, "integrations", "change", *of_it, "--active")
    assert fails("replay", *of_it) == "Use either `--last` or `--since`."
    assert "is not a time" in fails("replay", *of_it, "--since", "yesterday")
    assert "must have an offset" in fails("replay", *of_it, "--since", "2020-01-01T12:00")
    since = ("--since", "2020-01-01T00:00:00Z", "--until", "2020-01-02T00:00:00+01:00")
    nothing: dict[str, list[int]] = {"replayed": [], "still_refused": []}
    assert operate(app, "deliveries", "replay", *of_it, *since) == nothing
    done = operate(app, "deliveries", "replay", *of_it, "--last", "1h")
    assert (len(done["replayed"]), done["still_refused"]) == (2, [])
    assert operate(app, "deliveries", "replay", *of_it, "--last", "1h") == nothing
    assert operate(app, "alerts", "show", "acme/shop", "1")["title"] == "One"

    refused = operate(app, "deliveries", "list", *of_it, "--show", "refused")["deliveries"]
    assert [each["replayed_as"] for each in refused] == done["replayed"][::-1]
    found = operate(app, "deliveries", "recognize", *of_it, "--sample", str(done["replayed"][0]))
    assert (found["alert"]["title"], found["related"]) == ("One", [])
    answer = ("--sample", str(done["replayed"][0]), "--answer", "hosts=keep")
    assert operate(app, "deliveries", "recognize", *of_it, *answer)["alert"]["title"] == "One"
    again = operate(app, "deliveries", "resend", *of_it, str(done["replayed"][0]))
    assert ([each["iid"] for each in again["alerts"]], again["grouped"]) == ([1], 1)
    assert operate(app, "deliveries", "show", *of_it, str(again["id"])) == again


@pytest.mark.long
def test_changes_of_paging_objects_keep_the_other_fields(app: Flask) -> None:
    made(app)
    place = "acme/shop"
    rotation = ("--rotation", "weekly alice mon 09:00")
    operate(app, "schedules", "create", place, "--name", "Primary", "--time-zone", "UTC", *rotation)
    moved = operate(app, "schedules", "change", place, "Primary", "--time-zone", "Europe/Berlin")
    assert (moved["time_zone"], len(moved["rotations"])) == ("Europe/Berlin", 1)
    policy = ("--name", "page", "--step", "0s user:alice")
    operate(app, "escalations", "create", place, *policy)
    later = operate(app, "escalations", "change", place, "page", "--step", "5m schedule:Primary")
    assert later["name"] == "page"
    route = operate(app, "alert-routes", "create", place, "--name", "all", "--policy", "page")
    number = (place, str(route["id"]))
    hushed = operate(app, "alert-routes", "change", *number, "--nobody", "--severity", "low")
    assert hushed["escalation_policy_id"] is None
    assert operate(app, "alert-routes", "show", *number) == hushed
    beat = operate(app, "heartbeats", "create", place, "--name", "backup", "--every", "1d")
    of_it = (place, str(beat["id"]))
    assert operate(app, "heartbeats", "change", *of_it, "--grace", "1h")["every"] == 86_400
    assert operate(app, "heartbeats", "show", *of_it)["grace"] == 3_600
    hook = operate(app, "webhooks", "create", place, "--url", "https://a.example/hook")
    of_it = (place, str(hook["id"]))
    operate(app, "webhooks", "change", *of_it, "--events", "alert.opened")
    assert operate(app, "webhooks", "show", *of_it)["url"] == "https://a.example/hook"
    silence = ("--matcher", 'service="web"', "--for", "2h", "--comment", "deploy")
    made_silence = operate(app, "silences", "create", place, *silence)
    of_it = (place, str(made_silence["id"]))
    assert (
        operate(app, "silences", "change", *of_it, "--comment", "rollout")["comment"] == "rollout"
    )
    assert operate(app, "silences", "show", *of_it)["matchers"] == made_silence["matchers"]
    window = ("--name", "night", "--starts", "2027-01-01T02:00", "--for", "2h")
    of_it = (place, str(operate(app, "maintenance-windows", "create", place, *window)["id"]))
    renamed = operate(app, "maintenance-windows", "change", *of_it, "--name", "late")
    assert renamed["name"] == "late"
    assert operate(app, "maintenance-windows", "show", *of_it) == renamed
    contact = ("--type", "email", "--address", "alice@people.example")
    mine = operate(app, "contacts", "create", "alice", *contact)
    assert operate(app, "contacts", "show", "alice", str(mine["id"])) == mine
    stream = operate(app, "audit-streams", "create", "--url", "https://a.example/audit")
    url = ("--url", "https://b.example/audit")
    operate(app, "audit-streams", "change", str(stream["id"]), *url)
    shown = operate(app, "audit-streams", "show", str(stream["id"]))
    assert shown["url"] == "https://b.example/audit"
