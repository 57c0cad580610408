"""Changes of access between two Git commands, and during a command."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from http.client import HTTPResponse
from os import urandom
from pathlib import Path
from socket import socket
from subprocess import PIPE, STDOUT, Popen
from urllib.parse import quote

import pytest

from domain.access.roles import Role
from tests.faults.processes import wait_until
from tests.support.accounts.people import (
    Person,
    make_project,
    make_user,
    now,
    settings_of,
)
from tests.support.accounts.personal_tokens import Api, MadeToken, change, make_token
from tests.support.accounts.team import give_role, take_role
from tests.support.git.client import Done, GitClient
from tests.support.git.raw import clone_request, send_without_reading
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell
from web.jobs.retention import remove_deleted_data

pytestmark = pytest.mark.one_database("postgres")

FILES = {"README.md": b"# Shop\n"}
#: More bytes than fit into the buffers of a pipe and of two sockets.
LARGE = 8 * 1024 * 1024
#: Hook that waits for the test after Git has received the branches of the server.
HOOK = '#!/bin/sh\ntouch "$HOME/asked"\nuntil [ -e "$HOME/go" ]; do sleep 0.05; done\n'


@dataclass(frozen=True, kw_only=True)
class Team:
    """A private project, its owner's script, and a developer with Git."""

    gatebell: LiveGatebell
    project: str
    owner: GitClient
    script: Api
    developer: Person
    token: MadeToken
    git: GitClient

    def push(self) -> Done:
        """Commit and push as the developer."""
        work = self.git.home / "clone"
        self.git.commit(work, {"file": urandom(20)}, message="Change")
        return self.git.push(work, self.project, "HEAD:main")

    def fetch(self) -> Done:
        """Fetch as the developer."""
        return self.git.run("-C", "clone", "fetch", self.git.url(self.project))

    def branches(self) -> str:
        """Return the branches as the owner sees them."""
        return self.owner.do("ls-remote", self.owner.url(self.project))

    def on_project(self, method: str, path: str = "", **body: str) -> None:
        """Change the project with the API as the owner."""
        url = f"/projects/{quote(self.project, safe='')}{path}"
        answer = self.script.send_request(method, url, json=body)
        assert answer.status_code < 300, answer.text


@pytest.fixture
def team(gatebell: LiveGatebell, tmp_path: Path) -> Team:
    person, developer = make_user(gatebell), make_user(gatebell)
    project = make_project(gatebell, person)
    secret = make_token(gatebell, person).clear
    owner = GitClient(gatebell=gatebell, home=tmp_path / "owner", token=secret)
    assert owner.push(owner.new_work(FILES), project).status == 0
    give_role(gatebell, project, developer, Role.DEVELOPER)
    token = make_token(gatebell, developer, scopes="write_repository")
    git = GitClient(gatebell=gatebell, home=tmp_path / "developer", token=token.clear)
    git.clone(project)
    return Team(
        gatebell=gatebell,
        project=project,
        owner=owner,
        script=Api(gatebell, secret),
        developer=developer,
        token=token,
        git=git,
    )


def lower_role(team: Team) -> None:
    give_role(team.gatebell, team.project, team.developer, Role.GUEST)


def take_away_role(team: Team) -> None:
    take_role(team.gatebell, team.project, team.developer)


def archive(team: Team) -> None:
    team.on_project("POST", "/archive")


def delete(team: Team) -> None:
    team.on_project("DELETE")


def let_expire(team: Team) -> None:
    change(team.gatebell, team.token.id, expires_at=now() - timedelta(seconds=1))


def revoke(team: Team) -> None:
    change(team.gatebell, team.token.id, revoked_at=now())


Change = Callable[[Team], None]
#: Changes, and the status of reads and pushes from then on.
CHANGES: dict[str, tuple[Change, int, int]] = {
    "the role is lowered": (lower_role, 403, 403),
    "the project is archived": (archive, 200, 403),
    "the project is deleted": (delete, 404, 404),
    "the token is revoked": (revoke, 401, 401),
}


@pytest.mark.long
def test_a_changed_role_applies_to_the_next_command(team: Team) -> None:
    assert team.push().status == 0
    give_role(team.gatebell, team.project, team.developer, Role.REPORTER)
    assert "remote: You need the Developer role in" in team.push().said
    assert team.fetch().status == 0
    take_role(team.gatebell, team.project, team.developer)
    for refused in (team.push(), team.fetch()):
        assert "remote: Project not found, or you do not have access." in refused.said
    give_role(team.gatebell, team.project, team.developer, Role.DEVELOPER)
    assert team.push().status == 0


@pytest.mark.parametrize("name", CHANGES)
def test_changes_after_the_list_of_branches_apply_to_the_objects(team: Team, name: str) -> None:
    happens, read_status, push_status = CHANGES[name]
    before = team.branches()
    pushing = begin_to_push(team)
    assert listed(team) == 200
    happens(team)
    (team.git.home / "go").touch()
    said, _ = pushing.communicate(timeout=60)
    assert pushing.returncode != 0
    assert f"RPC failed; HTTP {push_status}" in said.decode()
    asked = machine(team.gatebell).post(
        f"{team.gatebell.url}/{team.project}.git/git-upload-pack",
        data=b"0000",
        auth=("oauth2", team.token.clear),
        headers={"Content-Type": "application/x-git-upload-pack-request"},
    )
    assert asked.status_code == read_status, asked.text
    assert ("WWW-Authenticate" in asked.headers) == (read_status == 401)
    if happens is not delete:
        assert team.branches() == before


def begin_to_push(team: Team) -> Popen[bytes]:
    """Start a push that waits after it has received the branches of the server."""
    work, hooks = team.git.home / "clone", team.git.home / "hooks"
    hooks.mkdir()
    (hooks / "pre-push").write_text(HOOK)
    (hooks / "pre-push").chmod(0o755)
    team.git.commit(work, {"file": b"new"}, message="Change")
    pushing = team.git.start(
        *("-C", str(work), "-c", f"core.hooksPath={hooks}"),
        *("push", team.git.url(team.project), "HEAD:main"),
        stdout=PIPE,
        stderr=STDOUT,
    )
    wait_until((team.git.home / "asked").exists)
    return pushing


def make_private(team: Team) -> None:
    """Make a project private that was public and that the developer left."""
    team.on_project("PUT", visibility="private")


@pytest.mark.long
@pytest.mark.parametrize(
    ("happens", "later"),
    [
        (archive, 200),
        (make_private, 404),
        (take_away_role, 404),
        (lower_role, 403),
        (let_expire, 401),
    ],
)
def test_a_running_clone_finishes_and_the_next_is_checked_again(
    team: Team, happens: Change, later: int
) -> None:
    if happens is make_private:
        team.on_project("PUT", visibility="public")
        take_away_role(team)
    with send_without_reading(team.gatebell, clone_request_of(team)) as client:
        answer = begun(client)
        happens(team)
        body = answer.read()
    assert body.endswith(b"0000")
    assert len(body) > LARGE
    assert listed(team) == later


@pytest.mark.long
def test_a_clone_of_a_removed_repository_fails_with_a_message(team: Team) -> None:
    with send_without_reading(team.gatebell, clone_request_of(team)) as client:
        answer = begun(client)
        delete(team)
        remove_deleted_data(settings_of(team.gatebell))
        body = answer.read()
    # This is the side band for errors, which Git shows (gitprotocol-pack).
    assert b"\x03aborting due to possible repository corruption on the remote side." in body
    assert listed(team) == 404
    assert '"request.failed"' not in team.gatebell.log_text()[-20_000:]


def clone_request_of(team: Team) -> bytes:
    """Push a large file, and return a request for everything."""
    work = team.owner.home / "work"
    commit = team.owner.commit(work, {"large": urandom(LARGE)}, message="Grow")
    assert team.owner.push(work, team.project).status == 0
    return clone_request(team.project, team.git.token, commit)


def begun(client: socket) -> HTTPResponse:
    """Return a response after its headers have arrived."""
    answer = HTTPResponse(client)
    answer.begin()
    assert answer.status == 200
    return answer


def listed(team: Team) -> int:
    """Return the status of the first request of a fetch."""
    url = f"{team.gatebell.url}/{team.project}.git/info/refs?service=git-upload-pack"
    return machine(team.gatebell).get(url, auth=("x", team.token.clear)).status_code
