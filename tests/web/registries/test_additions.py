"""Tests that a format, a grant and a contact type each need one file and one registry line."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.one_database("sqlite")
_HERE = "tests.web.registries"
_MADE_UP = ("made_up_format", "made_up_grant", "made_up_contact_type")
_CHECKS = ("format_checks", "grant_checks", "contact_type_checks")


@pytest.mark.long
def test_a_new_format_grant_and_contact_type_work_everywhere() -> None:
    """Run the checks in a separate process, whose registries each have an additional line."""
    plugins = [part for name in _MADE_UP for part in ("-p", f"{_HERE}.{name}")]
    files = [f"{_HERE.replace('.', '/')}/{name}.py" for name in _CHECKS]
    checks = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugins, *files)
    done = subprocess.run(checks, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
