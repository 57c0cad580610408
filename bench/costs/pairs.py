"""Processor time of requests before and after a change, measured in alternating pairs.

Both checkouts run at the same time, each with a separate database in the same Postgres. A pair is a
burst of requests to each checkout. The order alternates between pairs, so that other load on the
machine affects both equally. The ratio of a pair is reliable even on a busy machine, but absolute
microseconds are less so. Examples:

    python -m bench.costs.pairs --before main --only token-info,refresh
    python -m bench.costs.pairs --before . --python-after /opt/python/bin/python3 --pairs 15
"""

import json
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from signal import SIGTERM, signal
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from bench.alert_lists import say
from bench.costs.request_costs import PATIENCE_SECONDS, Sender, name_of, send_over
from bench.durable_postgres import durable_postgres
from bench.installs import ROOT
from bench.options import positive, works
from bench.processes import inherited, processor_times, seconds_between
from bench.samples import CannotMeasureError
from bench.shots import Magazine, Mode, Shot
from bench.workloads import Work

_SIDE = Path(__file__).with_name("pair_side.py")
_WORKS = (
    Work.TOKEN_INFO,
    Work.INTROSPECTION,
    Work.REFRESH,
    Work.CODE,
    Work.DEVICE,
    Work.POLL,
    Work.INTAKE,
)
#: Number of uncounted requests in a burst, which fill the caches of a process.
_WARM = 20
#: Number of bursts before the first pair, so that both web processes get requests.
_WARM_BURSTS = 4
_STOP_SECONDS = 60
_MICROSECONDS = 1_000_000

#: Processor times by process id: of the web processes, and of the processes of Postgres.
_Times = tuple[Mapping[int, float], Mapping[int, float]]


@dataclass(frozen=True, kw_only=True)
class Burst:
    """The processor time of a request in a burst, in microseconds."""

    web: float
    postgres: float

    @property
    def both(self) -> float:
        """Total of the web processes and Postgres in microseconds."""
        return self.web + self.postgres


class Side:
    """A checkout whose service is running."""

    def __init__(
        self, ready: Mapping[str, Any], postgres_pid: int | None, marker: str = ""
    ) -> None:
        """Store the output of `pair_side`, and which processes of Postgres to count."""
        self._pid, self._port = int(ready["pid"]), int(ready["port"])
        self._postgres_pid, self._marker = postgres_pid, marker
        self._senders = {
            work: Sender(_shot(ready["shots"][work]), self._send)
            for work in Work
            if work in ready["shots"]
        }
        self._connection: HTTPConnection | None = None

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Open a new connection that is used for requests until the block ends."""
        self._connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_SECONDS)
        with closing(self._connection):
            yield

    def send(self, work: Work, times: int = 1) -> None:
        """Send requests."""
        for _ in range(times):
            self._senders[work].send()

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, str]:
        if self._connection is None:
            raise CannotMeasureError("there is no connection")
        return send_over(self._connection)(method, path, headers, body)

    def times(self) -> _Times:
        """Return the processor times of the web processes and of Postgres."""
        pid = self._postgres_pid
        postgres = processor_times(pid, self._marker) if pid else {}
        return processor_times(self._pid, "gunicorn"), postgres


def burst(sides: Sequence[Side], work: Work, requests: int) -> Sequence[Burst]:
    """Send requests to the sides in turn, and return the processor time per request."""
    with ExitStack() as stack:
        for side in sides:
            stack.enter_context(side.connected())
            side.send(work, _WARM)
        before = [side.times() for side in sides]
        for _ in range(requests):
            for side in sides:
                side.send(work)
        after = [side.times() for side in sides]
    return [_spent(*times, requests) for times in zip(before, after, strict=True)]


def _spent(before: _Times, after: _Times, requests: int) -> Burst:
    web, postgres = (
        seconds_between(then, now) * _MICROSECONDS / requests
        for then, now in zip(before, after, strict=True)
    )
    return Burst(web=web, postgres=postgres)


def main() -> None:
    """Measure the selected kinds of requests and print a row for each."""
    given = _options()
    # The handler makes sure that Postgres and both services are stopped.
    signal(SIGTERM, lambda *_: sys.exit("terminated"))
    with TemporaryDirectory(prefix="gatebell-pairs-") as name, ExitStack() as stack:
        postgres = stack.enter_context(durable_postgres()) if given.database != "sqlite" else None
        sides = []
        for end in ("before", "after"):
            checkout = _checkout(getattr(given, end), Path(name) / end)
            python = getattr(given, f"python_{end}") or _python_of(checkout)
            url = postgres.databases.new_database() if postgres else ""
            order = {
                "directory": str(Path(name) / f"{end}-instance"),
                "database_url": url,
                "counts": _counts(given),
            }
            ready = stack.enter_context(_served(checkout, python, order))
            # The processor time of Postgres cannot be divided between two services at the same
            # time.
            marker = name_of(url) if given.by_request else ""
            sides.append(Side(ready, postgres.pid if postgres else None, marker))
            say(f"{end}: {getattr(given, end)}, Python {_described(python)}")
        _measure(sides[0], sides[1], given)


def _options() -> Namespace:
    parser = ArgumentParser(
        prog="python -m bench.costs.pairs",
        description="Compare the processor time of requests before and after a change, in pairs.",
    )
    checkout = "commit, or folder of a checkout"
    parser.add_argument("--before", required=True, help=checkout)
    parser.add_argument("--after", default=str(ROOT), help=f"{checkout} (default: this checkout)")
    python = "Python with the packages (default: from the folder's .venv, or the running Python)"
    parser.add_argument("--python-before", help=python)
    parser.add_argument("--python-after", help=python)
    names = ", ".join(Work)
    parser.add_argument(
        "--only", type=works, default=_WORKS, help=f"comma-separated kinds of requests: {names}"
    )
    parser.add_argument(
        "--pairs", type=positive, default=9, help="number of pairs of each kind of request (9)"
    )
    parser.add_argument(
        "--requests", type=positive, default=300, help="number of requests in a burst (300)"
    )
    parser.add_argument(
        "--by-request",
        action="store_true",
        help="alternate after each request, and count only the connections of Postgres; on a busy"
        " machine, this varies least for the web processes",
    )
    parser.add_argument("--database", choices=("postgres", "sqlite"), default="postgres")
    return parser.parse_args()


def _counts(given: Namespace) -> Mapping[str, int]:
    """Return the number of rows to prepare: codes work once, and devices must not poll too fast."""
    enough = (_WARM + given.requests) * (given.pairs + _WARM_BURSTS) + 1
    return {
        # The use of a token is stored once a minute, so fewer tokens cause fewer updates.
        "access_tokens": _WARM,
        "refresh_tokens": _WARM,
        "codes": enough if Work.CODE in given.only else 1,
        "device_codes": enough if Work.POLL in given.only else 1,
    }


def _checkout(named: str, into: Path) -> Path:
    """Return the folder of a checkout; a commit is unpacked into a new folder."""
    if Path(named).is_dir():
        return Path(named).resolve()
    archive = ("git", "archive", "--format=tar", named)
    packed = subprocess.run(archive, cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        raise CannotMeasureError(f"{named}: {packed.stderr.decode(errors='replace').strip()}")
    into.mkdir()
    subprocess.run(("tar", "-x"), cwd=into, input=packed.stdout, check=True)  # noqa: S607 - any tar
    return into


def _described(python: str) -> str:
    # The script is run by path because the checkout may be older than the script.
    asked = (python, "-I", ROOT / "web" / "interpreter.py")
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _python_of(checkout: Path) -> str:
    own = checkout / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


@contextmanager
def _served(
    checkout: Path, python: str, order: Mapping[str, object]
) -> Iterator[Mapping[str, Any]]:
    """Run the service of a checkout, and yield the output of `pair_side`."""
    with subprocess.Popen(
        # -P: do not import modules from the folder of the script.
        (python, "-P", _SIDE),
        cwd=checkout,
        env={**inherited(), "PYTHONPATH": str(checkout)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise CannotMeasureError("the process has no standard streams")
        process.stdin.write(f"{json.dumps(order)}\n")
        process.stdin.flush()
        if not (line := process.stdout.readline()):
            raise CannotMeasureError(f"the service of {checkout} did not start")
        try:
            yield json.loads(line)
        finally:
            process.stdin.close()
            process.wait(_STOP_SECONDS)


def _shot(described: Mapping[str, Any]) -> Shot:
    return Shot(
        **{
            **described,
            "mode": Mode(described["mode"]),
            "values": Magazine(described["values"]),
            "expected": {int(status): texts for status, texts in described["expected"].items()},
        }
    )


def _measure(before: Side, after: Side, given: Namespace) -> None:
    say(
        f"\n{given.pairs} pairs of bursts of {given.requests} requests. Values are microseconds of"
        " processor time per request."
    )
    say("Ratios are medians of the pairs, with the lowest and the highest ratio in brackets.\n")
    say("| request | web before | after | ratio | Postgres before | after | ratio | total ratio |")
    say("|---|--:|--:|---|--:|--:|---|---|")
    for work in given.only:
        for _ in range(_WARM_BURSTS):
            for side in (before, after):
                burst([side], work, given.requests // 4 or 1)
        pairs = [_pair((before, after), work, given, number) for number in range(given.pairs)]
        web = _columns(pairs, lambda burst: burst.web)
        postgres = _columns(pairs, lambda burst: burst.postgres)
        both = _ratios(pairs, lambda burst: burst.both)
        say(f"| {work} | {web} | {postgres} | {both} |")


def _pair(
    sides: tuple[Side, Side], work: Work, given: Namespace, number: int
) -> tuple[Burst, Burst]:
    if given.by_request:
        before, after = burst(sides, work, given.requests)
        return before, after
    bursts = {side: burst([side], work, given.requests)[0] for side in sides[:: 1 - number % 2 * 2]}
    return bursts[sides[0]], bursts[sides[1]]


def _columns(pairs: Sequence[tuple[Burst, Burst]], part: Callable[[Burst], float]) -> str:
    first, second = (median(part(pair[end]) for pair in pairs) for end in (0, 1))
    return f"{first:.0f} | {second:.0f} | {_ratios(pairs, part)}"


def _ratios(pairs: Sequence[tuple[Burst, Burst]], part: Callable[[Burst], float]) -> str:
    ratios = [part(after) / part(before) for before, after in pairs if part(before)]
    if not ratios:
        return ""
    return f"{median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    try:
        main()
    except CannotMeasureError as error:
        sys.exit(str(error))
