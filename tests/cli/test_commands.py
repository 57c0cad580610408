"""Tests of the command line with a running service: JSON output, and errors as JSON."""

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from time import monotonic

import pytest
import requests
from flask import Flask

from tests.support.accounts.people import Person, alice, sign_in, unique
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.commands import operate
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


@pytest.mark.long
def test_an_installation_can_be_set_up_by_script(live_postgres: LiveGatebell) -> None:
    name, group = unique("carol"), unique("crew")
    user = live_postgres.cli("users", "create", name, "--email", f"{name}@example.org")
    assert set(user) >= {"id", "username", "password"}
    assert live_postgres.cli("groups", "create", group, "--owner", name)["path"] == group
    project = live_postgres.cli(
        "projects", "create", f"{group}/shop", "--visibility", "internal", "--owner", name
    )
    assert (project["path_with_namespace"], project["visibility"]) == (f"{group}/shop", "internal")
    member = live_postgres.cli(
        "members", "add", f"{group}/shop", alice(live_postgres).username, "developer"
    )
    assert member["access_level"] == 30
    whom = (f"{group}/shop", alice(live_postgres).username)
    changed = live_postgres.cli("members", "change", *whom, "maintainer")
    assert changed == {**member, "access_level": 40}
    assert live_postgres.cli("members", "remove", *whom)["username"] == whom[1]
    made = live_postgres.cli(
        "integrations", "create", f"{group}/shop", "--type", "http", "--name", "Night shift"
    )
    assert set(made) >= {"url", "key", "endpoint_identifier"}
    endpoint = Endpoint(made["id"], f"{group}/shop", made["url"], made["key"], live_postgres.url)
    assert endpoint.accepted(title="It works") == {"iid": 1, "title": "It works"}
    person = Person(username=name, email=user["email"], password=user["password"])
    page = sign_in(live_postgres, person).get(f"{live_postgres.url}/{group}/shop/-/alerts")
    assert "It works" in page.text
    for subject, kind in ((group, "group.created"), (f"{group}/shop", "project.created")):
        event = list_events_with_subject(live_postgres, subject)[-1]
        assert (event.kind, event.details) == (kind, {"by": "command"})


def test_created_client_credentials_work(live_sqlite: LiveGatebell) -> None:
    owner = alice(live_sqlite).username
    token = live_sqlite.cli("tokens", "create", owner, "--name", "script", "--scopes", "read_user")
    (listed,) = live_sqlite.cli("tokens", "list", owner)["tokens"][:1]
    assert {**listed, "token": token["token"]} == token
    expires_on = date.fromisoformat(token["expires_at"])
    assert timedelta(364) <= expires_on - datetime.now(UTC).date() <= timedelta(365)
    answer = requests.get(
        f"{live_sqlite.url}/api/v4/user", headers={"PRIVATE-TOKEN": token["token"]}, timeout=30
    )
    assert answer.json()["username"] == owner
    application = live_sqlite.cli(
        "applications", "create", "Deploy Board", "--owner", owner, "--scopes", "read_user api",
        "--redirect-uri", "https://a.example/cb", "--redirect-uri", "http://127.0.0.1/cb",
    )  # fmt: skip
    assert set(application) >= {"application_id", "secret"}
    public = live_sqlite.cli(
        "applications", "create", "App", "--owner", owner, "--scopes", "read_user", "--public",
        "--redirect-uri", "com.example:/cb",
    )  # fmt: skip
    assert public["application_id"] != application["application_id"]


@pytest.mark.long
def test_a_given_password_is_read_from_standard_input_and_not_printed(
    gatebell: LiveGatebell,
) -> None:
    name = unique("dave")
    arguments = ("users", "create", name, "--email", f"{name}@example.org", "--password-stdin")
    refused = gatebell.run_cli(*arguments, stdin="short\n")
    assert refused.returncode == 1
    assert "at least 12 characters" in json.loads(refused.stderr)["error"]
    made = gatebell.printed(*arguments, stdin="correct horse battery staple\n")
    assert "password" not in made
    person = Person(username=name, email="", password="correct horse battery staple")
    assert sign_in(gatebell, person).get(gatebell.url).status_code == 200


ERRORS = (
    ("not found", "members", "add", "{project}", "nobody-here", "Guest"),
    ("is not a direct member of", "members", "remove", "{project}", "{alice}"),
    ("is already a member", "members", "add", "{group}", "{alice}", "Guest"),
    ("must have an owner", "members", "change", "{group}", "{alice}", "Guest"),
    ("is not a role", "members", "add", "{project}", "{alice}", "king"),
    ("not found", "members", "add", "no/such", "{alice}", "Guest"),
    ("already exists", "projects", "create", "{project}"),
    ("not found", "projects", "create", "no-such-group/x"),
    ("must contain a group", "projects", "create", "alone"),
    ("reserved", "groups", "create", "oauth"),
    ("already exists", "users", "create", "{alice}", "--email", "other@example.org"),
    ("email address", "users", "create", "new-one", "--email", "nonsense"),
    ("A username can", "users", "create", "new one", "--email", "new@example.org"),
    ("Project not found", "integrations", "create", "no/such", "--type", "http",
     "--name", "x"),
    ("must start with https://", "integrations", "create", "{project}", "--type", "external",
     "--name", "x"),
    ("scope", "tokens", "create", "{alice}", "--name", "x", "--scopes", "fly"),
    ("scope", "applications", "create", "x", "--owner", "{alice}", "--scopes", "fly",
     "--redirect-uri", "https://a.example"),
    ("", "applications", "create", "x", "--owner", "{alice}", "--scopes", "api",
     "--redirect-uri", "javascript:alert(1)"),
    ("not a setting", "settings", "set", "no_such", "1"),
    ("environment when the service starts", "settings", "set", "port", "1"),
    ("ALERT_NESTING_LIMIT must be", "settings", "set", "alert_nesting_limit", "many"),
)  # fmt: skip


@pytest.mark.long
def test_an_error_is_one_json_object_on_standard_error(app: Flask) -> None:
    known = {"alice": "alice", "group": "acme", "project": "acme/shop"}
    operate(app, "users", "create", "alice", "--email", "alice@people.example")
    operate(app, "groups", "create", "acme", "--owner", "alice")
    operate(app, "projects", "create", "acme/shop")
    for sentence, *arguments in ERRORS:
        given = [argument.format(**known) for argument in arguments]
        done = app.test_cli_runner().invoke(args=given)
        assert (done.exit_code, done.stdout) == (1, ""), given
        told = json.loads(done.stderr)
        assert set(told) == {"error"}, given
        assert sentence in told["error"], given


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("I9")
def test_a_setting_reaches_every_process_within_two_seconds(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    assert [endpoint.accepted()["iid"] for _ in range(2)] == [1, 1]
    set_to = ("settings", "set", "GENERIC_ALERT_FINGERPRINTING")
    assert gatebell.cli(*set_to, "off") == {
        "name": "GENERIC_ALERT_FINGERPRINTING",
        "value": False,
    }
    try:
        within_two_seconds(lambda: len({endpoint.accepted()["iid"] for _ in range(12)}) == 12)
        # A fingerprint in the alert is still used.
        assert len({endpoint.accepted(fingerprint="x")["iid"] for _ in range(4)}) == 1
    finally:
        gatebell.cli(*set_to, "on")
    within_two_seconds(
        lambda: len({endpoint.accepted(title="again")["iid"] for _ in range(12)}) == 1
    )


def within_two_seconds(is_so: Callable[[], bool]) -> None:
    """Check a condition until it is true; it must be true for a check after two seconds."""
    began = asked_at = monotonic()
    while not is_so():
        assert asked_at - began < 2
        asked_at = monotonic()


@pytest.mark.long
@pytest.mark.both_databases
def test_pruning_prints_the_number_of_removed_rows(gatebell: LiveGatebell) -> None:
    removed = gatebell.cli("prune")
    assert set(removed) >= {"deliveries", "sign_ins", "access_tokens"}
    assert all(count >= 0 for count in removed.values())


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("I1")
def test_metrics_count_alert_outcomes_of_all_processes(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    before = counted(gatebell)
    for number in range(10):
        endpoint.accepted(fingerprint=number % 5)
    endpoint.post(b"[")
    endpoint.accepted(fingerprint=1, end_time="2026-11-21T08:00:00Z")
    after = counted(gatebell)
    gained = {name: after[name] - before.get(name, 0) for name in after}
    assert (gained["opened"], gained["joined"], gained["resolved"]) == (5, 5, 1)
    assert gained["refused"] == 1


def counted(gatebell: LiveGatebell) -> dict[str, float]:
    text = requests.get(f"{gatebell.url}/metrics", timeout=10).text
    found = re.findall(r'gatebell_alerts_total\{outcome="([^"]+)"\} ([0-9.]+)', text)
    return {name: float(value) for name, value in found}
