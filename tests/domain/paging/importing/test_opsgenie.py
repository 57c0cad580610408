"""Import plans from backups by opsgenie-configuration-backup."""

import json
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pytest

from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.core.errors import InvalidError
from domain.paging.importing.export_files import ExportDocument, read_documents
from domain.paging.importing.import_plan import ImportPlan
from domain.paging.importing.opsgenie import build_opsgenie_import_plan
from domain.paging.on_call.schedule_plans import Cadence, Restriction, TurnUnit

BACKUP = Path(__file__).parents[3] / "payloads" / "exports" / "opsgenie"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
ALICE, BOB, CAROL = "b1f2-alice", "c3d4-bob", "e5f6-carol"


@pytest.fixture
def plan() -> ImportPlan:
    return build_opsgenie_import_plan(read_documents(BACKUP), now=NOW)


def reasons(plan: ImportPlan) -> dict[tuple[str, str], str]:
    return {(each.kind, each.name): each.reason for each in plan.left_out}


def test_users_have_the_address_of_their_sign_in(plan: ImportPlan) -> None:
    alice = plan.users[0]
    assert (alice.key, alice.username, alice.email, alice.name) == (
        ALICE,
        "alice",
        "alice@example.com",
        "Alice Example",
    )
    assert plan.teams == {"90098alp9": "Shop"}


def test_rotations_keep_turns_handoffs_and_restrictions(plan: ImportPlan) -> None:
    (schedule,) = plan.schedules
    assert (schedule.name, schedule.time_zone, schedule.team) == (
        "Shop_schedule",
        "Europe/Berlin",
        "90098alp9",
    )
    weekly, office = schedule.rotations
    assert weekly.users == (ALICE, BOB)
    assert weekly.cadence == Cadence(unit=TurnUnit.WEEKS, every=1, at=time(9), weekdays=(0,))
    # It is 08:00 UTC in the time zone of Berlin.
    assert weekly.starts_at == datetime(2026, 1, 5, 9)  # noqa: DTZ001 - a wall time
    assert office.cadence == Cadence(unit=TurnUnit.DAYS, every=2, at=time(9))
    assert office.layer == weekly.layer
    assert office.restrictions == (
        Restriction(start=time(9), end=time(), weekdays=(0,)),
        Restriction(start=time(), end=time(), weekdays=(1, 2, 3)),
        Restriction(start=time(), end=time(17, 30), weekdays=(4,)),
    )
    (override,) = schedule.overrides
    assert (override.user, override.starts_at.year) == (CAROL, 2098)


def test_steps_count_from_the_alert_and_repeat(plan: ImportPlan) -> None:
    (policy,) = plan.policies
    assert [(each.after, each.users, each.schedules) for each in policy.steps] == [
        (timedelta(), (), ("sch-1",)),
        (timedelta(minutes=5), (CAROL,), ()),
        (timedelta(hours=1), (ALICE, BOB), ()),
        (timedelta(days=2), (BOB,), ()),
    ]
    assert (policy.repeats, policy.pause) == (2, timedelta(minutes=10))
    assert policy.is_default
    assert any("acknowledged alerts" in each for each in policy.notes)


def test_a_random_member_of_a_team_becomes_a_round_robin() -> None:
    documents = [
        replace(each, value=json.loads(json.dumps(each.value).replace('"all"', '"random"')))
        for each in read_documents(BACKUP)
    ]
    (policy,) = build_opsgenie_import_plan(documents, now=NOW).policies
    assert [each.takes_turns for each in policy.steps] == [False, False, True, False]
    assert any("a random member of the team Shop" in each for each in policy.notes)


def test_objects_that_cannot_be_imported_are_listed_with_reasons(plan: ImportPlan) -> None:
    found = reasons(plan)
    assert "turns without a user" in found["rotation", "Shop_schedule: Gaps"]
    assert found["rotation", "Shop_schedule: Former"] == "The rotation has ended."
    assert "Add a route" in found["route", "Shop: Nights"]
    assert "does not receive alerts" in found["integration", "Mail"]
    assert {kind for kind, _ in found} == {
        *("rotation", "route", "integration", "policies", "maintenance"),
    }
    assert [(each.name, each.type, each.is_active) for each in plan.integrations] == [
        ("Shop Prometheus", PROMETHEUS, True),
        ("Deploy script", HTTP, False),
    ]


@pytest.mark.parametrize(
    "value",
    [
        *(None, [], "x", 1, {}, {"schedule": None}, {"schedule": {"id": "a"}}),
        {"schedule": {"id": "a", "name": "b", "rotations": [{"type": 1, "startDate": []}]}},
        {
            "schedule": {
                "id": "a",
                "name": "b",
                "timezone": "Mars/Olympus",
                "rotations": [
                    {"type": "weekly", "startDate": "0001-01-01T00:00:00+14:00", "length": 10**18},
                    {"type": "weekly", "startDate": 10**30, "participants": [{"type": "user"}]},
                ],
            },
            "scheduleOverrideList": [
                {"startDate": "9999-12-31T23:59:59-14:00", "endDate": "9999-12-31T23:59:59-14:00"}
            ],
        },
    ],
)
def test_malformed_objects_are_omitted_without_an_error(value: object) -> None:
    kinds = ("users", "teams", "schedules", "escalations", "integrations")
    documents = [ExportDocument(f"{kind}/x.json", value) for kind in kinds]
    build_opsgenie_import_plan(documents, now=NOW)


def test_other_files_are_rejected() -> None:
    with pytest.raises(InvalidError, match="not an Opsgenie backup"):
        build_opsgenie_import_plan([ExportDocument("a.json", {"users": []})], now=NOW)
