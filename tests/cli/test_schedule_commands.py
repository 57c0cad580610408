"""On-call schedules by command: each prints one JSON object."""

import json

import pytest

from tests.support.accounts.people import make_project, make_user, unique
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


def test_a_schedule_is_created_listed_shown_and_deleted(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    project = make_project(gatebell, alice)
    at = ("schedules",)
    made = gatebell.cli(
        *(*at, "create", project, "--name", "Primary", "--time-zone", "Europe/Berlin"),
        *("--rotation", f"weekly {alice.username} mon 09:00 from 2026-11-02"),
        *("--rotation", f"every 12h {alice.username} 08:00 only sat-sun 08:00-20:00"),
    )
    assert made["rotations"] == [
        {
            "name": "Rotation 1",
            "layer": 1,
            "users": [alice.username],
            "handover": "every week on Mon at 09:00",
            "starts_on": "2026-11-02",
            "restrictions": [],
        },
        {
            **made["rotations"][1],
            "layer": 2,
            "handover": "every 12 hours, counted from 08:00",
            "restrictions": ["Sat, Sun 08:00 to 20:00"],
        },
    ]
    assert gatebell.cli(*at, "list", project) == {"schedules": [made]}
    for named in ("primary", str(made["id"])):
        shown = gatebell.cli(*at, "show", project, named)
        assert shown["now"]["users"] == [alice.username]
    assert gatebell.cli(*at, "delete", project, "Primary") == {
        "id": made["id"],
        "name": "Primary",
    }
    assert gatebell.cli(*at, "list", project) == {"schedules": []}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"--rotation": "monthly alice"}, "weekly alice,bob mon 09:00"),
        ({"--rotation": "weekly nobody-at-all"}, "no member with this user name"),
        ({"--time-zone": "Berlin"}, "Europe/Berlin"),
        ({"--name": " "}, "Enter a name"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(
    gatebell: LiveGatebell, changes: dict[str, str], said: str
) -> None:
    project = make_project(gatebell, make_user(gatebell))
    given = {"--name": unique("any"), "--time-zone": "UTC", **changes}
    words = [word for each in given.items() for word in each]
    refused = gatebell.run_cli("schedules", "create", project, *words)
    assert refused.returncode == 1
    assert said in json.loads(refused.stderr)["error"]
