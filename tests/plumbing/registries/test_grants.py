"""A grant that is one file and one line of the registry."""

import subprocess
import sys
from pathlib import Path

import pytest

from domain.oauth.grants.registry import GRANTS, GRANTS_BY_TYPE
from domain.oauth.setting_up.refusals import REASONS

pytestmark = pytest.mark.one_database("sqlite")

_DOCS = Path(__file__).parents[3] / "docs"


def test_a_new_grant_is_found_everywhere() -> None:
    """Run the checks in a process of their own, whose registry has one line more."""
    here = "tests/plumbing/registries"
    plugin = ("-p", "tests.plumbing.registries.made_up_grant", "-p", "no:cacheprovider")
    checks = (sys.executable, "-m", "pytest", "-q", *plugin, f"{here}/grant_checks.py")
    done = subprocess.run(checks, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("grant_type", GRANTS_BY_TYPE)
def test_documents_name_every_grant(grant_type: str) -> None:
    pages = (each.read_text() for each in _DOCS.rglob("*.md") if each.parent.name != "adr")
    assert any(grant_type in text for text in pages)


def test_a_reason_is_declared_once() -> None:
    declared = [reason for grant in GRANTS for reason in grant.REASONS]
    assert all(REASONS[reason.name] is reason for reason in declared)
