"""Tests of `gatebell import`, which creates schedules, policies and more from exports."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from domain.audit.events import EventKind
from tests.support.accounts.people import Person, make_project, make_user
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell

EXPORTS = Path(__file__).parents[1] / "payloads" / "exports"
BACKUP = EXPORTS / "opsgenie"
GRAFANA = EXPORTS / "grafana_oncall" / "export.json"


@pytest.fixture
def alice(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell)


@pytest.fixture
def path(gatebell: LiveGatebell, alice: Person) -> str:
    return make_project(gatebell, alice)


@pytest.fixture
def renamed(tmp_path: Path, alice: Person) -> Callable[[Path], Path]:
    """Copy an export whose Alice is the user of this test, while Bob and Carol have no account."""

    def rename(text: str) -> str:
        for name in ("bob", "carol"):
            text = text.replace(f"{name}@example.com", f"{name}.{alice.username}@example.com")
            text = text.replace(f'"username": "{name}"', f'"username": "{name}-{alice.username}"')
        return text.replace("alice@example.com", alice.email)

    def copy(export: Path) -> Path:
        files = [export] if export.is_file() else list(export.rglob("*.json"))
        for file in files:
            target = tmp_path / "export" / file.relative_to(EXPORTS)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(rename(file.read_text()))
        return tmp_path / "export" / export.relative_to(EXPORTS)

    return copy


def outcomes(report: dict[str, Any], kind: str) -> dict[str, str]:
    return {each["name"]: each["outcome"] for each in report[kind]}


@pytest.mark.long
def test_an_opsgenie_backup_can_be_tried_imported_and_imported_again(
    gatebell: LiveGatebell, path: str, alice: Person, renamed: Callable[[Path], Path]
) -> None:
    given = (str(renamed(BACKUP)), "--project", path, "--create-users")
    tried = gatebell.cli("import", "opsgenie", *given, "--dry-run")
    assert tried["dry_run"] is True
    assert tried["summary"]["created"] == 6
    assert "key" not in json.dumps(tried["integrations"])
    assert gatebell.cli("schedules", "list", path)["on_call_schedules"] == []

    done = gatebell.cli("import", "opsgenie", *given)
    assert done["summary"] == tried["summary"]
    assert sorted(outcomes(done, "users").values()) == ["created", "created", "exists"]
    assert outcomes(done, "schedules") == {"Shop_schedule": "created"}
    assert outcomes(done, "policies") == {"Shop_escalation": "created"}
    assert outcomes(done, "integrations") == {
        "Shop Prometheus": "created",
        "Deploy script": "created",
    }
    assert all(each["key"] and each["url"] for each in done["integrations"])
    assert ("rotation", "Shop_schedule: Gaps") in {
        (each["kind"], each["name"]) for each in done["left_out"]
    }
    schedule = gatebell.cli("schedules", "show", path, "Shop_schedule")
    weekly, office = schedule["rotations"]
    bob = next(each["username"] for each in done["users"] if each["name"].startswith("bob"))
    assert [each["username"] for each in weekly["users"]] == [alice.username, bob]
    assert weekly["starts_on"] == "2026-01-05"
    assert office["layer"] == weekly["layer"]
    policy = gatebell.cli("escalations", "show", path, "Shop_escalation")
    assert [each["delay_seconds"] for each in policy["steps"]] == [0, 300, 3600]
    assert policy["default"] is True
    (step,) = [each for each in done["policies"][0]["notes"] if each.startswith("Step 4")][:1]
    assert "24 hours" in step
    kinds = {each.kind for each in list_events_with_subject(gatebell, "Shop_schedule")}
    assert EventKind.ON_CALL_SCHEDULE_CHANGED in kinds

    again = gatebell.cli("import", "opsgenie", *given)
    assert again["summary"]["created"] == 0
    assert gatebell.cli("schedules", "show", path, "Shop_schedule") == schedule


@pytest.mark.long
def test_a_grafana_oncall_export_is_imported_by_team(
    gatebell: LiveGatebell, path: str, alice: Person, renamed: Callable[[Path], Path]
) -> None:
    given = (str(renamed(GRAFANA)), "--team", f"Shop={path}")
    done = gatebell.cli("import", "grafana-oncall", *given)
    assert outcomes(done, "schedules") == {"Shop primary": "created"}
    # Only Alice has an account, and the import was not asked to create others.
    assert sorted(outcomes(done, "users").values()) == ["exists", "left out", "left out"]
    notes = " ".join(done["schedules"][0]["notes"])
    assert "has no account" in notes
    schedule = gatebell.cli("schedules", "show", path, "Shop primary")
    users = {user["username"] for each in schedule["rotations"] for user in each["users"]}
    assert users == {alice.username}
    # An object without a team has no project.
    assert outcomes(done, "policies") == {"Shop chain": "created", "Quiet": "left out"}
    assert outcomes(done, "integrations") == {"Alertmanager": "created", "Deploys": "created"}


@pytest.mark.long
@pytest.mark.both_databases
def test_a_backup_can_be_imported_into_a_group(
    gatebell: LiveGatebell, path: str, renamed: Callable[[Path], Path]
) -> None:
    group = path.split("/", maxsplit=1)[0]
    given = (str(renamed(BACKUP)), "--into", group, "--create-users")
    done = gatebell.cli("import", "opsgenie", *given)
    (schedule,) = done["schedules"]
    assert (schedule["outcome"], schedule["group"]) == ("created", group)
    assert outcomes(done, "policies") == {"Shop_escalation": "created"}
    policy = gatebell.cli("escalations", "show", group, "Shop_escalation")
    assert {each["type"] for step in policy["steps"] for each in step["targets"]} >= {"schedule"}
    # Alerts are received by projects.
    assert set(outcomes(done, "integrations").values()) == {"left out"}
    assert "--integrations" in done["integrations"][0]["notes"][0]
    members = gatebell.cli("members", "list-direct", group)
    again = gatebell.cli("import", "opsgenie", *given, "--add-members")
    assert again["summary"]["created"] == 0
    for kind in ("users", "schedules", "policies"):
        assert set(outcomes(again, kind).values()) == {"exists"}
    again = gatebell.cli("import", "opsgenie", *given, "--integrations", path)
    assert again["summary"]["created"] == len(again["integrations"]) > 0
    assert outcomes(again, "schedules") == {"Shop_schedule": "exists"}
    assert {(each["outcome"], each["project"]) for each in again["integrations"]} == {
        ("created", path)
    }
    assert gatebell.cli("schedules", "list", path)["on_call_schedules"] == []
    # Later changes are kept.
    gatebell.cli("schedules", "change", group, "Shop_schedule", "--time-zone", "Asia/Tokyo")
    again = gatebell.cli("import", "opsgenie", *given, "--integrations", path)
    assert again["summary"]["created"] == 0
    changed = gatebell.cli("schedules", "show", group, "Shop_schedule")
    assert changed["time_zone"] == "Asia/Tokyo"
    assert gatebell.cli("escalations", "show", group, "Shop_escalation") == policy
    assert gatebell.cli("members", "list-direct", group) == members


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_missing_members_are_added_on_request(
    gatebell: LiveGatebell, alice: Person, renamed: Callable[[Path], Path]
) -> None:
    elsewhere = make_project(gatebell, make_user(gatebell))
    given = (str(renamed(GRAFANA)), "--project", elsewhere)
    done = gatebell.cli("import", "grafana-oncall", *given, "--dry-run")
    assert "does not have the Developer role" in " ".join(done["schedules"][0]["notes"])
    done = gatebell.cli("import", "grafana-oncall", *given, "--add-members")
    assert f"Added to {elsewhere} as a Developer." in " ".join(done["users"][0]["notes"])
    schedule = gatebell.cli("schedules", "show", elsewhere, "Shop primary")
    assert [each["username"] for each in schedule["rotations"][0]["users"]] == [alice.username]


@pytest.mark.one_database("sqlite")
def test_invalid_imports_are_rejected_with_a_reason(
    gatebell: LiveGatebell, path: str, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    for given, words in (
        ((str(GRAFANA),), "Teams in this export: Shop."),
        ((str(GRAFANA), "--team", f"Elsewhere={path}"), "Teams in this export: Shop."),
        ((str(GRAFANA), "--project", "acme/nothing"), "not found"),
        ((str(BACKUP), "--project", path), "not a Grafana OnCall export"),
        ((str(broken), "--project", path), "broken.json"),
    ):
        refused = gatebell.run_cli("import", "grafana-oncall", *given)
        assert refused.returncode == 1, refused.stdout
        assert words in json.loads(refused.stderr)["error"]
