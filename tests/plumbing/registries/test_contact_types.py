"""A type of contact that is one file and one line of the registry."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.one_database("sqlite")


def test_a_new_type_of_contact_is_offered_everywhere_and_is_paged() -> None:
    """Run the checks in a process of their own, whose registry has one line more."""
    here = "tests/plumbing/registries"
    plugin = ("-p", "tests.plumbing.registries.made_up_contact_type", "-p", "no:cacheprovider")
    checks = (sys.executable, "-m", "pytest", "-q", *plugin, f"{here}/contact_type_checks.py")
    done = subprocess.run(checks, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
