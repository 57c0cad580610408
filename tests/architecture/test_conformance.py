"""Checks that docs/evidence/conformance.md lists the state of every module of the test plans."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.http.oauth import test_metadata
from tests.http.oauth.openid import (
    test_backchannel_logout,
    test_logout_conformance,
    test_openid_conformance,
    test_registration_conformance,
)

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "conformance.md"
#: Test module that repeats each plan.
PLANS = {
    "oidcc-basic-certification-test-plan": test_openid_conformance,
    "oidcc-config-certification-test-plan": test_metadata,
    "oidcc-dynamic-certification-test-plan": test_registration_conformance,
    "oidcc-rp-initiated-logout-certification-test-plan": test_logout_conformance,
    "oidcc-backchannel-rp-initiated-logout-certification-test-plan": test_backchannel_logout,
}


def in_page() -> dict[str, list[tuple[str, str]]]:
    """Return each plan's modules and their states, in the order of the page."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    row = re.compile(r"^\| `([\w-]+)` \| ([\w ]+) \|", re.MULTILINE)
    return {plan_of(section): row.findall(section) for section in sections}


def plan_of(section: str) -> str:
    found = re.search(r"`([\w-]+-test-plan)`", section)
    assert found, section
    return found.group(1)


def in_tests(module: ModuleType) -> Iterator[tuple[str, str]]:
    for name, test in vars(module).items():
        if name.startswith("test_oidcc_"):
            marks = {mark.name for mark in getattr(test, "pytestmark", [])}
            yield name, "not offered" if "not_offered" in marks else "held"


@pytest.mark.parametrize("plan", PLANS)
def test_the_page_and_the_tests_of_a_plan_agree(plan: str) -> None:
    told = [
        (f"test_{name.replace('-', '_')}".lower(), state) for name, state in in_page().pop(plan)
    ]
    assert told == list(in_tests(PLANS[plan]))


def test_the_page_lists_no_other_plan_and_gives_reasons_for_gaps() -> None:
    assert list(in_page()) == list(PLANS)
    assert "| not offered | |" not in PAGE.read_text(encoding="utf-8")
