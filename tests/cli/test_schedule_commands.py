"""Tests of commands for on-call schedules, which each print one JSON object."""

import pytest

from tests.support.accounts.people import make_project, make_user
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


@pytest.mark.long
def test_a_schedule_can_be_created_listed_shown_and_deleted(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    project = make_project(gatebell, alice)
    at = ("schedules",)
    made = gatebell.cli(
        *(*at, "create", project, "--name", "Primary", "--time-zone", "Europe/Berlin"),
        *("--rotation", f"weekly {alice.username} mon 09:00 from 2026-11-02"),
        *("--rotation", f"every 12h {alice.username} 08:00 only sat-sun 08:00-20:00"),
    )
    weekly, half_daily = made["rotations"]
    assert [each["username"] for each in weekly["users"]] == [alice.username]
    assert (weekly["name"], weekly["layer"], weekly["type"]) == ("Rotation 1", 1, "weekly")
    assert (weekly["weekdays"], weekly["handover_time"]) == (["mon"], "09:00")
    assert (weekly["starts_on"], weekly["restrictions"]) == ("2026-11-02", [])
    assert (half_daily["layer"], half_daily["every"], half_daily["unit"]) == (2, 12, "hours")
    weekends = {"start_time": "08:00", "end_time": "20:00", "weekdays": ["sat", "sun"]}
    assert half_daily["restrictions"] == [weekends]
    assert gatebell.cli(*at, "list", project) == {"on_call_schedules": [made], "total": 1}
    for named in ("primary", str(made["id"])):
        assert gatebell.cli(*at, "show", project, named) == made
        current = gatebell.cli(*at, "on-call", project, named)
        assert [each["username"] for each in current["now"]["users"]] == [alice.username]
    assert gatebell.cli(*at, "delete", project, "Primary") == {**made, "deleted": True}
    assert gatebell.cli(*at, "list", project) == {"on_call_schedules": [], "total": 0}
