"""Pushes whose sender or project changes between the first and the last byte."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from domain.access.roles import Role
from models import PersonalAccessToken
from tests.faults.processes import wait_until
from tests.support.accounts.people import (
    database_of,
    make_project,
    make_user,
    now,
    set_state,
)
from tests.support.accounts.personal_tokens import Api, change, make_token
from tests.support.accounts.team import give_role, take_role
from tests.support.git.client import GitClient
from tests.support.git.raw import build_request_headers
from tests.support.service.live import LiveGatebell
from tests.support.wire.kept_connection import KeptConnection

NO_COMMIT = "0" * 40


class Push:
    """A push of one commit, sent in two parts."""

    def __init__(self, gatebell: LiveGatebell, home: Path) -> None:
        """Create a project with an owner, and a developer who pushes."""
        self.gatebell = gatebell
        self.owner, self.sender = make_user(gatebell, name="owner"), make_user(gatebell)
        self.project = make_project(gatebell, self.owner)
        give_role(gatebell, self.project, self.sender, Role.DEVELOPER)
        self.token = make_token(gatebell, self.sender, scopes="write_repository")
        self.git = GitClient(gatebell=gatebell, home=home, token=self.token.clear)
        work = self.git.new_work({"README.md": b"Hello\n"})
        self.commit = self.git.head(work)
        self.pack = self._pack(work)

    def _pack(self, work: Path) -> bytes:
        made = self.git.do("-C", str(work), "pack-objects", "--all", "-q", str(work / "made"))
        return (work / f"made-{made.strip()}.pack").read_bytes()

    def body(
        self, old: str = NO_COMMIT, new: str | None = None, *, answer: str = "report-status"
    ) -> bytes:
        """Return the whole body; `answer` is the report that the client requests."""
        line = f"{old} {new or self.commit} refs/heads/main\0{answer} delete-refs".encode()
        pack = b"" if new == NO_COMMIT else self.pack
        return b"%04x" % (len(line) + 4) + line + b"0000" + pack

    @contextmanager
    def begun(self, *, part: float = 0.5, body: bytes | None = None) -> Iterator["Begun"]:
        """Send a part of the push. A part of 1 sends everything but the last chunk."""
        whole = self.body() if body is None else body
        half = int(len(whole) * part)
        lines = ("Transfer-Encoding: chunked",)
        with KeptConnection(self.gatebell.port) as connection:
            start = build_request_headers(
                "git-receive-pack", self.project, self.token.clear, *lines
            )
            change(self.gatebell, self.token.id, last_used_at=None)
            connection.socket.sendall(start + _chunk(whole[:half]))
            wait_until(self._is_admitted)
            yield Begun(connection, whole[half:])

    def _is_admitted(self) -> bool:
        with database_of(self.gatebell) as session:
            token = session.get_one(PersonalAccessToken, self.token.id)
            return token.last_used_at is not None

    def branches(self) -> str:
        """Return the branches that the owner sees."""
        token = make_token(self.gatebell, self.owner, scopes="read_repository").clear
        owner = GitClient(gatebell=self.gatebell, home=self.git.home, token=token)
        return owner.do("ls-remote", owner.url(self.project))


class Begun:
    """A push whose first part is sent."""

    def __init__(self, connection: KeptConnection, rest: bytes) -> None:
        self._connection = connection
        self._rest = rest

    def finish(self) -> str:
        """Send the rest, and return Git's report."""
        self._connection.socket.sendall(_chunk(self._rest) + b"0\r\n\r\n")
        answer = self._connection.answer()
        assert answer.status == 200, answer
        return answer.body.decode()


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n" % len(piece) + piece + b"\r\n" if piece else b""


@pytest.fixture
def push(gatebell: LiveGatebell, tmp_path: Path) -> Push:
    return Push(gatebell, tmp_path / "home")


def owner_sends(push: Push, method: str, path: str) -> None:
    token = make_token(push.gatebell, push.owner).clear
    project = push.project.replace("/", "%2F")
    answer = Api(push.gatebell, token).send_request(method, f"/projects/{project}{path}")
    assert answer.ok, answer.text


def revoked(push: Push) -> None:
    change(push.gatebell, push.token.id, revoked_at=now())


def demoted(push: Push) -> None:
    give_role(push.gatebell, push.project, push.sender, Role.REPORTER)


def removed(push: Push) -> None:
    take_role(push.gatebell, push.project, push.sender)


HALF, ALL_BUT_THE_LAST_CHUNK = 0.5, 1
#: Changes during a push: the change, the part that is sent before, and the sender's message.
ENDS: dict[str, tuple[Callable[[Push], None], float, str]] = {
    "the sender is blocked": (
        lambda push: set_state(push.gatebell, push.sender, "blocked"),
        *(ALL_BUT_THE_LAST_CHUNK, ""),
    ),
    "the sender is removed": (removed, HALF, ""),
    "the sender becomes a reporter": (
        *(demoted, HALF, "You need the Developer role in {project} to push."),
    ),
    "the token is revoked": (revoked, ALL_BUT_THE_LAST_CHUNK, "The access token was revoked."),
    "the project is archived": (
        lambda push: owner_sends(push, "POST", "/archive"),
        *(HALF, "{project} is archived: its repository is read-only."),
    ),
}


@pytest.mark.both_databases
@pytest.mark.parametrize("end", ENDS)
def test_a_push_is_rejected_when_its_sender_loses_access(push: Push, end: str) -> None:
    comes_to_pass, part, why = ENDS[end]
    body = push.body(answer="report-status side-band-64k")
    with push.begun(part=part, body=body) as begun:
        comes_to_pass(push)
        report = begun.finish()
    assert "ng refs/heads/main pre-receive hook declined" in report
    assert f"{why.format(project=push.project)} Nothing was changed." in report
    assert push.branches() == ""


def test_a_push_to_a_project_deleted_meanwhile_updates_no_branch(push: Push) -> None:
    with push.begun() as begun:
        owner_sends(push, "DELETE", "")
        report = begun.finish()
    assert "ok refs/heads/main" not in report


@pytest.mark.long
def test_a_demoted_sender_cannot_delete_a_branch(push: Push) -> None:
    with push.begun() as begun:
        assert "ok refs/heads/main" in begun.finish()
    with push.begun(part=1, body=push.body(push.commit, NO_COMMIT)) as begun:
        demoted(push)
        assert "pre-receive hook declined" in begun.finish()
    assert push.commit in push.branches()


def test_a_token_that_expires_meanwhile_completes_its_push(push: Push) -> None:
    with push.begun() as begun:
        change(push.gatebell, push.token.id, expires_at=now())
        assert "ok refs/heads/main" in begun.finish()


@pytest.mark.long
def test_a_push_to_a_project_renamed_meanwhile_completes(push: Push) -> None:
    with push.begun() as begun:
        project, token = push.project.replace("/", "%2F"), make_token(push.gatebell, push.owner)
        Api(push.gatebell, token.clear).send_request(
            "PUT", f"/projects/{project}", json={"path": "store"}
        )
        assert "ok refs/heads/main" in begun.finish()
    push.project = push.project.replace("/shop", "/store")
    assert push.commit in push.branches()
