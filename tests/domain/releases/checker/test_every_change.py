"""Every change of the schedule is found in breaking code, and not in similar code."""

from dataclasses import fields

import pytest

from domain.releases.checker.access_logs import RATE_LIMITS
from domain.releases.checker.requests import API_PATH
from domain.releases.checker.text_checks import check_file
from domain.releases.schedule import SCHEDULE
from tests.domain.releases.checker.examples import BREAKS, Example
from tests.domain.releases.checker.near_misses import MISSES
from web.settings.definitions import Settings

_SETTINGS = {
    f"{API_PATH}/users": "users_api_rate_limit",
    f"{API_PATH}/users/:id": "user_api_rate_limit",
    f"{API_PATH}/projects": "projects_api_rate_limit",
    f"{API_PATH}/projects/:id": "project_api_rate_limit",
    f"{API_PATH}/groups": "groups_api_rate_limit",
    f"{API_PATH}/groups/:id": "group_api_rate_limit",
    f"{API_PATH}/groups/:id/projects": "group_projects_api_rate_limit",
}


def _found(example: Example) -> list[tuple[str, int]]:
    report = check_file(example.name, example.content.encode())
    return [(each.change.id, each.line) for each in report.findings]


@pytest.mark.parametrize("example", BREAKS, ids=lambda each: f"{each.change} {each.name}")
def test_breaking_code_is_found_at_its_line(example: Example) -> None:
    assert _found(example) == [(example.change, line) for line in example.lines]


@pytest.mark.parametrize("example", MISSES, ids=lambda each: f"{each.change} {each.name}")
def test_similar_code_is_not_found(example: Example) -> None:
    assert _found(example) == []


def test_the_rates_are_the_default_settings() -> None:
    usual = {field.name: field.default for field in fields(Settings)}
    for path, (count, window) in RATE_LIMITS.items():
        minutes = int(window.total_seconds() // 60)
        unit = "minute" if minutes == 1 else f"{minutes} minutes"
        assert usual[_SETTINGS[path]] == f"{count}/{unit} from 18.0"


@pytest.mark.spec("M2")
def test_every_change_has_an_example() -> None:
    assert {each.change for each in BREAKS} == {each.id for each in SCHEDULE}
    assert {each.change for each in MISSES} <= {each.id for each in SCHEDULE}
