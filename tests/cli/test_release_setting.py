"""Tests of `gatebell settings set release`: its output, and its confirmation."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.accounts.administration import forget_settings, read_stored_settings
from tests.support.accounts.people import make_user
from tests.support.service.live import Done, LiveGatebell
from tests.support.service.live_settings import changed_settings

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.spec("M2", "M5")]
SET_RELEASE = ("settings", "set", "release", "17.0")


@pytest.fixture(autouse=True)
def as_before(gatebell: LiveGatebell) -> Iterator[None]:
    yield
    forget_settings(gatebell)


@pytest.mark.long
def test_a_script_gets_the_breaks_without_a_confirmation(gatebell: LiveGatebell) -> None:
    done = gatebell.run_cli("settings", "set", "RELEASE", "17.0")
    told = json.loads(done.stdout)
    assert (done.returncode, told["name"], told["value"]) == (0, "RELEASE", "17.0")
    assert (told["rehearsal"]["running"], told["rehearsal"]["release"]) == ("18.0", "17.0")
    assert "From release 18.0 back to 17.0: " in done.stderr
    assert " reverted." in done.stderr
    assert "No recorded calls" not in done.stderr, "calls are compared with what is ahead"

    again = gatebell.run_cli("settings", "set", "release", "17.0")
    assert (json.loads(again.stdout), again.stderr) == ({"name": "RELEASE", "value": "17.0"}, "")
    other = gatebell.run_cli("settings", "set", "page_size", "30")
    assert (json.loads(other.stdout), other.stderr) == ({"name": "PAGE_SIZE", "value": 30}, "")

    reset = gatebell.run_cli("settings", "reset", "release")
    assert "From release 17.0 to 18.0: " in reset.stderr
    # Other tests have called affected operations, unless this test is the first one.
    assert re.search(r"No recorded calls are affected\.|, last 20", reset.stderr)
    assert json.loads(reset.stdout)["rehearsal"]["release"] == "18.0"
    wrong = gatebell.run_cli("settings", "set", "release", "soon")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "RELEASE must be a release such as 18.0" in json.loads(wrong.stderr)["error"]


@pytest.mark.long
def test_tokens_that_get_an_expiry_are_counted(gatebell: LiveGatebell) -> None:
    name = make_user(gatebell).username
    with changed_settings(gatebell, release="15.11"):
        gatebell.cli("tokens", "create", name, "--name", "x", "--scopes", "api")
        rehearsed = gatebell.run_cli("releases", "rehearse", "16.0", "--format", "text")
        assert " without an expiry date will expire on " in rehearsed.stdout
        done = gatebell.run_cli("settings", "set", "release", "16.0")
        assert " without an expiry date will expire on " in done.stderr
        assert json.loads(done.stdout)["rehearsal"]["tokens_given_expiry"] >= 1
        (token,) = gatebell.cli("tokens", "list", name)["tokens"]
        assert token["expires_at"] is not None


def asks_for_confirmation(done: Done | subprocess.CompletedProcess[str]) -> bool:
    """Return whether a confirmation was requested, and check that the breaks were shown."""
    assert "From release 18.0 back to 17.0: " in done.stderr
    return "Change the running release to 17.0? [y/N]" in done.stderr


@pytest.mark.long
def test_a_user_at_a_terminal_has_to_confirm(gatebell: LiveGatebell) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"n\n")
    try:
        done = subprocess.run(
            [sys.executable, "gatebell.py", *SET_RELEASE],
            cwd=ROOT,
            env=gatebell.environment,
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 1, done.stderr
    assert asks_for_confirmation(done)
    assert read_stored_settings(gatebell) == {}


@pytest.mark.parametrize("more", [(), ("--yes",)])
def test_a_confirmation_is_requested_once_or_skipped_by_an_option(
    gatebell: LiveGatebell, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    done = gatebell.run_cli(*SET_RELEASE, *more, stdin="y\n")
    assert done.returncode == 0, done.stderr
    assert asks_for_confirmation(done) is (not more)
    assert read_stored_settings(gatebell) == {"release": "17.0"}
