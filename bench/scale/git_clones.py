"""Measures token checks during clones of a large repository, and with clients that do not read.

The service runs as `make run` starts it. Git's own client pushes a repository of random bytes, then
several clients clone it at the same time. Afterwards, clients request it without reading the
response. Meanwhile, other connections check a token. Memory is the private memory of the web
processes, and the memory of all Git child processes. Clients and service share the machine.

    python -m bench.scale.git_clones --mebibytes 500 --clones 8 --more 16
    python -m bench.scale.git_clones --objects 300000 --clones 8 --more 16

`--more 0` skips the second round of clones. With `--objects`, the repository has many small files
in a long history instead, for which Git needs more memory. It is cloned as it was pushed, and again
after the worker's maintenance.
"""

import os
import re
import socket
import subprocess
import sys
from argparse import ArgumentParser
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import monotonic, sleep

from domain.git.maintenance import pack_pushed_repositories
from domain.git.program import Git
from tests.support.accounts.people import Person, make_project, make_user
from tests.support.accounts.personal_tokens import make_token
from tests.support.git.client import GitClient
from tests.support.service.live import LiveGatebell
from web.settings.environment import parse_settings

_MIB = 1024 * 1024
_CHECKER_COUNT = 4
_PAUSE_SECONDS = 0.02
_MEASUREMENT_INTERVAL_SECONDS = 0.25
_QUIET_SECONDS = 10.0
_CLIENTS_NICENESS = 15
#: Git options for random bytes, which cannot be compressed or compared with each other.
PLAIN_GIT_OPTIONS = ("-c", "core.compression=0", "-c", "pack.window=0")
_FILES_PER_COMMIT = 1000
_FOLDER_COUNT = 100
_UNREAD_SECONDS = 20.0
_UNREADING_CLIENTS = 16
_GIT_PROCESS_PATTERN = re.compile(
    r"^nice |\bgit[ -](http-backend|upload-pack|receive-pack|pack-|index-pack|unpack)"
)


@dataclass
class PartMeasurements:
    """The measurements of one part."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    web_mib: float = 0.0
    git_mib: float = 0.0
    children: int = 0

    def percentile(self, part: float) -> float:
        """Return a percentile of the token checks in milliseconds."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000


class TokenWatch:
    """Checks a token and measures memory, part by part."""

    def __init__(self, live: LiveGatebell, token: str) -> None:
        self._live = live
        self._token = token
        self._stop = Event()
        self.seen = PartMeasurements()
        self._threads = [Thread(target=self._check) for _ in range(_CHECKER_COUNT)]
        self._threads.append(Thread(target=self._look))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Measure until the block ends."""
        for each in self._threads:
            each.start()
        try:
            yield
        finally:
            self._stop.set()
            for each in self._threads:
                each.join()

    def begin(self) -> PartMeasurements:
        """Start another part."""
        self.seen = PartMeasurements()
        return self.seen

    def _check(self) -> None:
        headers = {"Authorization": f"Bearer {self._token}"}
        connection = HTTPConnection("127.0.0.1", self._live.port, timeout=60)
        while not self._stop.wait(_PAUSE_SECONDS):
            seen, began = self.seen, monotonic()
            connection.request("GET", "/oauth/token/info", headers=headers)
            answer = connection.getresponse()
            answer.read()
            seen.seconds.append(monotonic() - began)
            seen.wrong += answer.status != 200  # noqa: PLR2004 - OK

    def _look(self) -> None:
        while not self._stop.wait(_MEASUREMENT_INTERVAL_SECONDS):
            below = _list_descendants(self._live.pid)
            web = [pid for pid, name in below if "gunicorn" in name]
            git = [pid for pid, name in below if _GIT_PROCESS_PATTERN.search(name)]
            seen = self.seen
            seen.web_mib = max(seen.web_mib, sum(map(_read_private_mib, web)))
            seen.git_mib = max(seen.git_mib, sum(map(_read_private_mib, git)))
            seen.children = max(seen.children, len(git))


def _list_descendants(root: int) -> list[tuple[int, str]]:
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid=,args="],  # noqa: S607 - any ps
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    below: dict[int, list[tuple[int, str]]] = {}
    for pid, parent, name in rows:
        below.setdefault(int(parent), []).append((int(pid), name))
    found = list(below.get(root, []))
    for child, _name in found:  # the list grows during the iteration
        found.extend(below.get(child, []))
    return found


def _read_private_mib(pid: int) -> float:
    """Return the private dirty memory of a process in MiB, without mapped packs."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    wanted = ("Private_Dirty:",)
    lines = (line.split() for line in text.splitlines())
    return sum(int(line[1]) for line in lines if line[0] in wanted) / 1024


@dataclass(frozen=True, kw_only=True)
class CloneOptions:
    """The parameters: a size in MiB or a number of objects, and concurrent clones."""

    mebibytes: int
    objects: int
    clones: int
    more: int

    @property
    def label(self) -> str:
        """Description of the pushed data."""
        return f"{self.objects:,} objects" if self.objects else f"{self.mebibytes} MiB"


def push_repository(git: GitClient, project: str, work: Path) -> None:
    """Push a repository, and exit if that fails."""
    if git.start("-C", str(work), "push", "--quiet", git.url(project), "main").wait() != 0:
        sys.exit("The push failed.")


def create_large_files(git: GitClient, mebibytes: int) -> Path:
    """Create a repository of random bytes."""
    return git.new_work(
        {f"part-{number}": os.urandom(4 * _MIB) for number in range(mebibytes // 4)}
    )


def _create_many_objects(git: GitClient, count: int) -> Path:
    """Create a repository of small files, many of which change with each commit."""
    work, stream = git.home / "work", git.home / "stream"
    git.do("init", "--quiet", "--initial-branch=main", str(work))
    with stream.open("wb") as file:
        for commit in range(count // _FILES_PER_COMMIT):
            file.writelines(_build_import_commit(commit))
    with stream.open("rb") as file:
        importing = git.start("-C", str(work), "fast-import", "--quiet", stdin=file)
        if importing.wait() != 0:
            sys.exit("The import failed.")
    stream.unlink()
    return work


def _build_import_commit(commit: int) -> Iterator[bytes]:
    """Yield a commit in the format of git-fast-import."""
    yield b"commit refs/heads/main\ncommitter Alice <alice@people.example> "
    yield b"%d +0000\ndata 6\nChange\n" % (1_700_000_000 + commit)
    for number in range(_FILES_PER_COMMIT):
        yield b"M 100644 inline %d/%d.txt\n" % (number % _FOLDER_COUNT, number + commit % 7 * 1000)
        text = 20 * (b"line %d of commit %d\n" % (number, commit))
        yield b"data %d\n%s\n" % (len(text), text)


def _start_clone(git: GitClient, project: str, number: int) -> subprocess.Popen[bytes]:
    # A low priority simulates clients with separate processors.
    command = ("clone", "--quiet", "--bare", git.url(project), f"copy-{number}")
    return git.start(*command, preexec_fn=partial(os.nice, _CLIENTS_NICENESS))


@contextmanager
def _request_without_reading(
    live: LiveGatebell, project: str, token: str, commit: str
) -> Iterator[None]:
    """Request the whole repository without reading the response."""
    basic = b64encode(f"x:{token}".encode()).decode()
    line = b"want " + commit.encode() + b" side-band-64k ofs-delta\n"
    body = b"%04x" % (len(line) + 4) + line + b"0000" + b"0009done\n"
    head = (
        f"POST /{project}.git/git-upload-pack HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Basic {basic}\r\nContent-Type: application/x-git-upload-pack-request\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with client:
        client.connect(("127.0.0.1", live.port))
        client.sendall(head.encode() + body)
        yield


@dataclass(frozen=True, kw_only=True)
class MeasurementParts:
    """The parts of the measurement, which run one after the other while tokens are checked."""

    live: LiveGatebell
    watch: TokenWatch
    git: GitClient
    project: str

    def timed(self, name: str, work: Callable[[], None]) -> str:
        """Run a part, and return its line of the table."""
        seen, began = self.watch.begin(), monotonic()
        work()
        return _format_line(name, seen, monotonic() - began)

    def clone_all(self, count: int) -> None:
        """Run `count` concurrent clones, and exit if one fails."""
        with TemporaryDirectory(dir=self.git.home) as aside:
            there = GitClient(gatebell=self.live, home=Path(aside), token=self.git.token)
            running = [_start_clone(there, self.project, number) for number in range(count)]
            failed = sum(each.wait() != 0 for each in running)
        if failed:
            sys.exit(f"{failed} clones failed.")

    def ignore_answers(self, count: int, commit: str) -> None:
        """Request the whole repository `count` times without reading the responses."""
        with ExitStack() as opened:
            for _ in range(count):
                opened.enter_context(
                    _request_without_reading(self.live, self.project, self.git.token, commit)
                )
            sleep(_UNREAD_SECONDS)


def _measure_all(parts: MeasurementParts, wanted: CloneOptions) -> Iterator[str]:
    yield parts.timed("none", lambda: sleep(_QUIET_SECONDS))
    make = partial(create_large_files, parts.git, wanted.mebibytes)
    work = (partial(_create_many_objects, parts.git, wanted.objects) if wanted.objects else make)()
    pushing = partial(push_repository, parts.git, parts.project, work)
    yield parts.timed(f"a push of {wanted.label}", pushing)
    yield from _measure_clones(parts, wanted, "")
    if wanted.objects:
        packing = partial(_run_maintenance, parts.live)
        yield parts.timed("maintenance", packing)
        yield from _measure_clones(parts, wanted, ", after maintenance")
    ignore = partial(parts.ignore_answers, _UNREADING_CLIENTS, parts.git.head(work))
    yield parts.timed(f"{_UNREADING_CLIENTS} clients that do not read", ignore)


def _measure_clones(parts: MeasurementParts, wanted: CloneOptions, how: str) -> Iterator[str]:
    for count in filter(None, (wanted.clones, wanted.more)):
        yield parts.timed(f"{count} concurrent clones{how}", partial(parts.clone_all, count))


def _run_maintenance(live: LiveGatebell) -> None:
    """Run the worker's hourly maintenance."""
    settings = parse_settings(live.environment)
    pack_pushed_repositories(Git(program=settings.git_program, root=settings.repositories_path))


def _create_access_token(live: LiveGatebell, person: Person) -> str:
    form = {"grant_type": "password", "username": person.username, "password": person.password}
    answer = live.http().post(f"{live.url}/oauth/token", data=form)
    return str(answer.json()["access_token"])


def _format_line(name: str, seen: PartMeasurements, seconds: float) -> str:
    checks = (seen.percentile(part) for part in (0.5, 0.99, 1.0))
    return (
        f"| {name} | {seconds:.0f} s | {len(seen.seconds):,} | {seen.wrong} | "
        + " | ".join(f"{each:.0f} ms" for each in checks)
        + f" | {seen.web_mib:.0f} MiB | {seen.git_mib:.0f} MiB in {seen.children} |\n"
    )


def _read_options() -> CloneOptions:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument(
        "--mebibytes", type=int, default=500, help="size of the repository in MiB (500)"
    )
    parser.add_argument(
        "--objects", type=int, default=0, help="number of small files, instead of --mebibytes"
    )
    parser.add_argument("--clones", type=int, default=8, help="number of concurrent clones (8)")
    parser.add_argument(
        "--more", type=int, default=16, help="number of clones in a second round (16); 0 skips it"
    )
    return CloneOptions(**vars(parser.parse_args()))


def main() -> None:
    """Run the measurements and print a table."""
    wanted = _read_options()
    with TemporaryDirectory() as directory:
        live = LiveGatebell(instance_path=Path(directory, "instance"), database_url="")
        live.start()
        try:
            owner = make_user(live)
            project = make_project(live, owner)
            token = make_token(live, owner).clear
            home = Path(directory, "home")
            git = GitClient(
                gatebell=live,
                home=home,
                token=token,
                options=() if wanted.objects else PLAIN_GIT_OPTIONS,
            )
            watch = TokenWatch(live, _create_access_token(live, owner))
            sys.stdout.write(
                "| load | duration | checks | failures | p50 | p99 | max"
                " | web processes | Git processes |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
            )
            with watch.watching():
                parts = MeasurementParts(live=live, watch=watch, git=git, project=project)
                for line in _measure_all(parts, wanted):
                    sys.stdout.write(line)
                    sys.stdout.flush()
        finally:
            live.stop()


if __name__ == "__main__":
    main()
