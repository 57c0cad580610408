"""A recording holds responses and their effects, and a comparison lists the differences."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.golden.answers import Normalizer
from tests.golden.compare import differences, read_expected, read_recording, report

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("recording")
    command = (sys.executable, "-m", "tests.golden.record", str(ROOT), str(folder))
    subprocess.run([*command, "--only", "silences create|POST .*silences$"], cwd=ROOT, check=True)
    return read_recording(folder)


@pytest.mark.long
def test_a_request_is_recorded_with_its_effects(recording: dict[str, dict[str, Any]]) -> None:
    made = {key: answer for key, answer in recording.items() if answer.get("events")}
    assert {answer["address"].rpartition("/")[2].split()[-1] for answer in made.values()} == {
        "create",  # The commands that create projects and groups.
        "silences",
    }
    assert {answer["events"][0]["kind"] for answer in made.values()} == {"silence.created"}
    assert all(answer["rows"]["silences"] == 1 for answer in made.values())


@pytest.mark.long
def test_recorded_statuses_depend_on_permissions(recording: dict[str, dict[str, Any]]) -> None:
    statuses = {
        key.rpartition("[")[2].split()[0]: answer["status"]
        for key, answer in recording.items()
        if key.startswith("POST") and key.endswith("silences good]")
    }
    assert statuses["nobody"] == 401
    assert statuses["stan"] == 404
    assert statuses["gus"] == statuses["read_api"] == 403
    assert statuses["olga"] == statuses["dora"] == 201


def test_random_values_get_a_placeholder() -> None:
    normaliser = Normalizer("/recorded")
    said = "gbk-2UXUMPILOqjOaBzCiTes91QHApcwPumnOhzQlbW6PVE20NEzj in /recorded/log"
    assert normaliser.normalized({"out": [said]}) == {"out": ["<credential> in <folder>/log"]}
    assert normaliser.normalized({"duration": 1375}) == {"duration": 0}
    assert normaliser.normalized("whsec_V+7Sf4B/Ta8c= 0611447179700958") == "<credential> <hex>"
    kept = "resolve_after_minutes is 30 from 2031-03-03T12:00:00.000Z"
    assert normaliser.normalized(kept) == kept


BEFORE = {
    "GET /a [olga]": {"address": "GET /a", "key": "GET /a [olga]", "status": 200, "body": ["x"]},
    "GET /b [olga]": {"address": "GET /b", "key": "GET /b [olga]", "status": 200, "body": ["x"]},
}


def test_differences_are_grouped_by_address_and_can_be_expected() -> None:
    after = {key: {**answer, "status": 403} for key, answer in BEFORE.items()}
    found = list(differences(BEFORE, after))
    assert [line.strip() for line in report(found) if line] == [
        *("GET /a", "[olga]", '- "status": 200', '+ "status": 403'),
        *("GET /b", "[olga]", '- "status": 200', '+ "status": 403'),
    ]
    (expected,) = read_expected(
        '[[difference]]\nrequests = "^GET /a "\nlines = \'"status"\'\nreason = "H1"\n'
    )
    assert [expected.is_of(each) for each in found] == [True, False]


def test_expected_differences_have_reasons() -> None:
    text = Path(__file__).with_name("expected.toml").read_text(encoding="utf-8")
    assert all(each.reason for each in read_expected(text))


def test_a_request_without_a_response_is_a_difference() -> None:
    (found,) = differences(BEFORE, {"GET /a [olga]": BEFORE["GET /a [olga]"]})
    assert found.address == "GET /b"
    assert any('"status": 200' in line for line in found.lines)
