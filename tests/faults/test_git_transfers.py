"""Tests of Git clients that vanish, do not read or send too much, and of their effect on others."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.faults.conftest import Start
from tests.faults.processes import children, wait_until, web_processes
from tests.support.accounts.people import Person, make_project, make_user
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.git.client import GitClient
from tests.support.git.raw import (
    build_request_headers,
    clone_request,
    reset_connection,
    send_without_reading,
)
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.live_settings import changed_settings

_MIB = 1024 * 1024
#: Number of bytes, more than the buffers of a pipe and of two sockets.
LARGE = 8 * _MIB
_PROCESSES = 4


@pytest.fixture(scope="module")
def live(new_service: NewService) -> Iterator[LiveGatebell]:
    settings = {
        "GIT_PROCESSES": str(_PROCESSES),
        "GIT_WAIT_SECONDS": "1",
        "REQUEST_TIMEOUT_SECONDS": "5",
        "WEB_CONCURRENCY": "1",
    }
    with running(new_service("sqlite", only="web", **settings)) as started:
        yield started


@pytest.fixture(scope="module")
def owner(live: LiveGatebell) -> Person:
    return make_user(live)


@pytest.fixture(scope="module")
def git(live: LiveGatebell, owner: Person, tmp_path_factory: pytest.TempPathFactory) -> GitClient:
    token = make_token(live, owner, scopes="api").clear
    return GitClient(gatebell=live, home=tmp_path_factory.mktemp("home"), token=token)


@pytest.fixture(scope="module")
def large(live: LiveGatebell, owner: Person, git: GitClient) -> tuple[str, str]:
    """Create a project with a large file, and return it with its commit."""
    project = make_project(live, owner)
    work = git.new_work({"large": os.urandom(LARGE)}, name="large")
    assert git.push(work, project).status == 0
    return project, git.head(work)


def children_of(live: LiveGatebell) -> list[str]:
    """Return the programs that the web processes have started."""
    return [words for pid in web_processes(live) for _, words in children(pid)]


def is_at_rest(live: LiveGatebell) -> bool:
    return children_of(live) == []


def other_caller(live: LiveGatebell, project: str, home: Path) -> GitClient:
    """Return the Git client of another user, who has all permissions."""
    somebody = make_user(live, admin=True)
    del project
    token = make_token(live, somebody, scopes="api").clear
    return GitClient(gatebell=live, home=home, token=token)


@pytest.mark.faults_full
def test_clients_that_do_not_read_are_cut_off_and_do_not_block_token_checks(
    live: LiveGatebell, git: GitClient, large: tuple[str, str], owner: Person, tmp_path: Path
) -> None:
    project, commit = large
    script = Api(live, make_token(live, owner).clear)
    request = clone_request(project, git.token, commit)
    with ExitStack() as opened:
        for _ in range(_PROCESSES // 2):
            opened.enter_context(send_without_reading(live, request))
        wait_until(lambda: len(children_of(live)) == _PROCESSES // 2)
        # A caller with all slots gets an error that Git shows.
        told = git.run("clone", git.url(project), str(tmp_path / "refused"))
        assert "remote: The server is busy with other Git transfers." in told.said
        refused = live.http().get(
            f"{live.url}/{project}.git/info/refs?service=git-upload-pack", auth=("x", git.token)
        )
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) > 0
        # Other users are served, and tokens are checked.
        other_caller(live, project, tmp_path / "other").clone(project)
        assert script.send_request("GET", "/user").status_code == 200
        wait_until(lambda: is_at_rest(live))
    git.clone(project, into=str(tmp_path / "later"))


@pytest.mark.long
@pytest.mark.parametrize("body", [b"", b"0011want "], ids=["nothing", "a part"])
def test_incomplete_requests_do_not_block_git(
    live: LiveGatebell, git: GitClient, owner: Person, tmp_path: Path, body: bytes
) -> None:
    project = make_project(live, owner, visibility="public")
    work = git.new_work({"readme": b"x"}, name=f"idle-{len(body)}")
    assert git.push(work, project).status == 0
    wait_until(lambda: is_at_rest(live))  # Programs that the push started have ended.
    with ExitStack() as opened:
        for token in ("", git.token):
            idle = (
                build_request_headers("git-upload-pack", project, token, "Content-Length: 500")
                + body
            )
            for _ in range(_PROCESSES):
                opened.enter_context(send_without_reading(live, idle))
        sleep(1)
        # A program that waits for a body would stay; short calls of Git can still run.
        wait_until(lambda: is_at_rest(live), seconds=10)
        other_caller(live, project, tmp_path / "other").clone(project)
        git.clone(project, into=str(tmp_path / "own"))


@pytest.mark.long
def test_the_children_of_a_client_that_vanishes_end(
    live: LiveGatebell, git: GitClient, large: tuple[str, str]
) -> None:
    project, commit = large
    with send_without_reading(live, clone_request(project, git.token, commit)) as client:
        wait_until(lambda: children_of(live))
        reset_connection(client)
        wait_until(lambda: is_at_rest(live))


@pytest.mark.long
def test_an_interrupted_push_changes_nothing(
    live: LiveGatebell, git: GitClient, owner: Person
) -> None:
    project = make_project(live, owner)
    work = git.new_work({"large": os.urandom(4 * _MIB)}, name="broken-off")
    commit = git.head(work)
    line = f"{'0' * 40} {commit} refs/heads/main\0report-status\n".encode()
    begun = b"%04x" % (len(line) + 4) + line + b"0000PACK\x00\x00\x00\x02\x00\x00\x00\x03"
    for ending in (b"", b"0\r\n\r\n"):
        request = build_request_headers(
            "git-receive-pack", project, git.token, "Transfer-Encoding: chunked"
        )
        request += b"%x\r\n" % len(begun) + begun + b"\r\n" + ending
        with send_without_reading(live, request) as client:
            if not ending:
                wait_until(lambda: children_of(live))
                reset_connection(client)
            wait_until(lambda: is_at_rest(live))
    (repository,) = (live.instance_path / "repositories").glob(f"??/{_number(live, project)}-*.git")
    assert not list((repository / "objects").glob("tmp_objdir-*"))
    assert not list((repository / "refs" / "heads").iterdir())
    # The second push is complete.
    assert git.push(work, project).status == 0


def _number(live: LiveGatebell, project: str) -> str:
    listed = live.cli("repositories", "list")
    return Path(str(listed[project])).name.partition("-")[0]


@pytest.mark.long
def test_only_one_of_two_simultaneous_pushes_to_a_branch_succeeds(
    live: LiveGatebell, git: GitClient, owner: Person
) -> None:
    project = make_project(live, owner)
    first = git.new_work({"a": b"a"}, name="race")
    assert git.push(first, project).status == 0
    copies = [git.clone(project, into=f"race-{number}") for number in range(2)]
    for number, copy in enumerate(copies):
        git.commit(copy, {"a": b"%d" % number}, message=f"Change {number}")
    pushes = [
        git.start("-C", str(copy), "push", "--quiet", git.url(project), "main") for copy in copies
    ]
    assert sorted(each.wait() == 0 for each in pushes) == [False, True]
    winner = git.clone(project, into="race-winner")
    assert git.head(winner) in {git.head(copy) for copy in copies}
    assert live.cli("repositories", "check")["faults"] == {}


@pytest.mark.long
def test_a_push_that_is_too_large_is_rejected_with_a_message(
    live: LiveGatebell, git: GitClient, owner: Person
) -> None:
    project = make_project(live, owner)
    work = git.new_work({"large": os.urandom(2 * _MIB)}, name="too-large")
    with changed_settings(live, push_limit_bytes=str(_MIB)):
        told = git.push(work, project)
        assert told.status != 0
        assert "pack exceeds maximum allowed size" in told.said
    with changed_settings(live, free_space_for_pushes_bytes=str(2**50)):
        told = git.push(work, project)
        assert "remote: The server's disk is nearly full" in told.said
        git.clone(project, into="no-room-but-readable")
    assert git.push(work, project).status == 0


@pytest.mark.long
def test_harmful_file_names_are_rejected(live: LiveGatebell, git: GitClient, owner: Person) -> None:
    project = make_project(live, owner)
    work = str(git.new_work({"hook": b"#!/bin/sh\ntouch /tmp/hooked\n"}, name="harmful"))
    blob = git.do("-C", work, "rev-parse", "HEAD:hook").strip()
    for name in (".git", "..", "git~1"):
        entry = git.home / "entry"
        entry.write_text(f"100755 blob {blob}\t{name}\n")
        with entry.open("rb") as given:
            made = git.start("-C", work, "mktree", stdin=given, stdout=-1)
            tree = made.communicate()[0].decode().strip()
        commit = git.do("-C", work, "commit-tree", "-m", "Harm", tree).strip()
        told = git.run("-C", work, "push", git.url(project), f"{commit}:refs/heads/harm")
        assert told.status != 0, name
        assert "unpacker error" in told.said or "hasDot" in told.said
    assert "refs/heads/harm" not in git.do("ls-remote", git.url(project))


@pytest.mark.faults_full
def test_a_stopping_service_does_not_wait_forever_for_a_clone(start: Start, tmp_path: Path) -> None:
    live = start("sqlite", WEB_CONCURRENCY="1", GRACEFUL_TIMEOUT_SECONDS="2")
    person = make_user(live)
    token = make_token(live, person, scopes="api").clear
    git = GitClient(gatebell=live, home=tmp_path, token=token)
    project = make_project(live, person)
    work = git.new_work({"large": os.urandom(LARGE)})
    assert git.push(work, project).status == 0
    with send_without_reading(live, clone_request(project, token, git.head(work))):
        wait_until(lambda: children_of(live))
        started = [pid for web in web_processes(live) for pid, _ in children(web)]
        assert live.stop() == 0
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started))
    live.start()
    git.clone(project, into="after")


@pytest.mark.long
def test_without_git_other_features_work_and_pages_report_it(start: Start, tmp_path: Path) -> None:
    # Each process looks for Git when it starts, so one of several might not know yet.
    live = start("sqlite", only="web", GIT_PROGRAM="no-such-git", WEB_CONCURRENCY="1")
    person = make_user(live)
    project = make_project(live, person, visibility="public")
    missing = {"status": "ok", "database": "ok", "git": "missing"}
    wait_until(lambda: live.http().get(f"{live.url}/readyz").json() == missing)
    wait_until(lambda: "Git on this server is missing." in _page(live, project))
    path = project.replace("/", "%2F")
    commit = live.http().get(f"{live.url}/api/v4/projects/{path}/repository/commits/main")
    assert commit.status_code == 503
    git = GitClient(gatebell=live, home=tmp_path)
    told = git.run("clone", git.url(project))
    assert "remote: Git on this server is missing." in told.said
    assert live.run_cli("repositories", "check").returncode == 1


@pytest.mark.long
def test_a_large_push_and_clone_do_not_increase_memory_of_the_web_process(
    live: LiveGatebell, git: GitClient, owner: Person
) -> None:
    project = make_project(live, owner)
    work = git.new_work({"large": os.urandom(32 * _MIB)}, name="very-large")
    (web,) = web_processes(live)
    before = _own_mib(web)
    assert git.push(work, project).status == 0
    assert (git.clone(project, into="very-large-copy") / "large").stat().st_size == 32 * _MIB
    assert _own_mib(web) - before < 16


def _own_mib(pid: int) -> float:
    """Return the peak memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        pytest.skip("only Linux tells how much memory a process has had")
    lines = (line.split() for line in status.read_text(encoding="utf-8").splitlines())
    return next(int(line[1]) for line in lines if line[0] == "VmHWM:") / 1024


@pytest.mark.faults_full
def test_sixteen_clients_that_do_not_read_delay_no_token(start: Start, tmp_path: Path) -> None:
    live = start("sqlite")
    person = make_user(live)
    token = make_token(live, person, scopes="api").clear
    git = GitClient(gatebell=live, home=tmp_path, token=token)
    project = make_project(live, person)
    work = git.new_work({"large": os.urandom(LARGE)})
    assert git.push(work, project).status == 0
    request = clone_request(project, token, git.head(work))
    script = Api(live, token)
    with ExitStack() as opened:
        for _ in range(16):
            opened.enter_context(send_without_reading(live, request))
        wait_until(lambda: len(children_of(live)) == 16)
        for _ in range(100):
            began = monotonic()
            assert script.send_request("GET", "/user").status_code == 200
            assert monotonic() - began < 5


def _page(live: LiveGatebell, project: str) -> str:
    page = live.http().get(f"{live.url}/{project}")
    assert page.status_code == 200
    return page.text
