"""Tests of `gatebell maintenance-windows` and `flap-settings`."""

import json

import pytest

from tests.support.accounts.people import alice, make_project
from tests.support.service.live import LiveGatebell

pytestmark = [pytest.mark.spec("J1"), pytest.mark.one_database("sqlite")]


def error_of(gatebell: LiveGatebell, *arguments: str) -> str:
    done = gatebell.run_cli(*arguments)
    assert done.returncode == 1, done
    return str(json.loads(done.stderr)["error"])


@pytest.mark.long
def test_a_window_can_be_created_listed_and_deleted(gatebell: LiveGatebell) -> None:
    path = make_project(gatebell, alice(gatebell))
    first = ("--name", "Sundays", "--starts", "2030-01-06T02:00", "--for", "2h")
    made = gatebell.cli(
        *("maintenance-windows", "create", path, *first, "--repeat", "weekly"),
        *("--time-zone", "Europe/Berlin", "--severity", "high", "--matcher", 'team="db"'),
    )
    assert (made["rule"], made["severities"], made["labels"]) == (
        "FREQ=WEEKLY",
        ["high"],
        ['team="db"'],
    )
    assert made["occurrences"][0]["starts_at"] == "2030-01-06T01:00:00.000Z"
    assert "`repeat` and `rule` cannot be combined." in error_of(
        gatebell,
        *("maintenance-windows", "create", path, *first),
        *("--repeat", "daily", "--rule", "FREQ=DAILY"),
    )
    assert gatebell.cli("maintenance-windows", "list", path)["total"] == 1
    assert gatebell.cli("maintenance-windows", "delete", path, str(made["id"]))["id"] == made["id"]
    assert gatebell.cli("maintenance-windows", "list", path)["maintenance_windows"] == []


def test_flap_settings_can_be_shown_and_changed(gatebell: LiveGatebell) -> None:
    path = make_project(gatebell, alice(gatebell))
    assert gatebell.cli("flap-settings", "show", path)["openings"] == 5
    changed = gatebell.cli("flap-settings", "set", path, "--off", "--openings", "3")
    assert (changed["enabled"], changed["openings"], changed["hold_minutes"]) == (False, 3, 10)
    assert gatebell.cli("flap-settings", "show", path) == changed
    refused = gatebell.run_cli("flap-settings", "set", path, "--openings", "0")
    assert (refused.returncode, "range 1<=x<=100" in refused.stderr) == (2, True)
