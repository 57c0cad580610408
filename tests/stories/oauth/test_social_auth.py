"""PyPI's social-auth-core with its unchanged GitLab backend, which reads the groups of users."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from domain.access.roles import Role
from domain.projects import namespace_changes
from domain.projects.members import OPERATOR_VIEWER, add_member
from tests.stories.third_parties import Browser
from tests.support.accounts.namespaces import get_namespace
from tests.support.accounts.people import (
    CALLBACK,
    ClientCredentials,
    bob,
    database_of,
    make_application,
    make_user,
    now,
    open_browser,
    unique,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases
FOLDER = Path(__file__).parents[1] / "social_auth"
PACKAGES = FOLDER / "packages"


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    """Install the packages of requirements.txt, once for all processes of the tests."""
    wanted = FOLDER / "requirements.txt"
    stamp = PACKAGES / ".installed"
    with wanted.open(encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted.read_text():
            return
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"),
                *("--require-hashes", "--target", str(PACKAGES), "--requirement", str(wanted)),
            ],
            check=True,
            timeout=300,
        )
        stamp.write_text(wanted.read_text(encoding="utf-8"), encoding="utf-8")


def run(gatebell: LiveGatebell, client: ClientCredentials, **given: Any) -> dict[str, Any]:
    """Run the program with its settings."""
    prefix = "SOCIAL_AUTH_GITLAB_"
    settings = {
        f"{prefix}KEY": client.client_id,
        f"{prefix}SECRET": client.secret,
        f"{prefix}API_URL": gatebell.url,
        f"{prefix}GROUPS_ENABLED": True,
    }
    wanted = {"settings": settings, "redirect_uri": CALLBACK, "session": {}, "data": {}, **given}
    done = subprocess.run(
        [sys.executable, "program.py", json.dumps(wanted)],
        cwd=FOLDER,
        env={**os.environ, "PYTHONPATH": str(PACKAGES)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


@pytest.mark.long
def test_a_user_signs_in_with_all_groups(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    own, other, foreign = (unique(name) for name in ("team", "guests", "foreign"))
    below = f"{own}/below"
    with database_of(gatebell) as session:
        for path in (own, below, other, foreign):
            namespace_changes.create_group(path, reserved=frozenset(), session=session, now=now())
        for path, role in ((own, Role.DEVELOPER), (other, Role.GUEST)):
            place = get_namespace(path, session=session)
            add_member(
                place, person.username, role, viewer=OPERATOR_VIEWER, session=session, now=now()
            )
    client = make_application(gatebell, bob(gatebell), scopes="read_user read_api")
    left = run(gatebell, client)
    assert "scope=read_user+read_api" in left["location"]
    returned = Browser(open_browser(gatebell, person), person).walk(left["location"])
    data = dict(parse_qsl(urlsplit(returned).query))
    came = run(gatebell, client, session=left["session"], data=data)
    assert came["details"]["username"] == person.username
    assert came["details"]["email"] == person.email
    assert sorted(came["groups"]) == sorted([own, below, other])
