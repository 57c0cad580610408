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

from bench.alert_lists import print_progress
from bench.costs.request_costs import (
    REQUEST_TIMEOUT_SECONDS,
    ShotSender,
    build_send_function,
    get_database_name,
)
from bench.durable_postgres import start_durable_postgres
from bench.installs import ROOT
from bench.options import parse_positive, parse_request_kinds
from bench.processes import (
    compute_seconds_between,
    get_inherited_environment,
    measure_processor_times,
)
from bench.samples import CannotMeasureError
from bench.shots import OneTimeValues, Shot, ValueMode
from bench.workloads import RequestKind

_SIDE_SCRIPT = Path(__file__).with_name("pair_side.py")
_REQUEST_KINDS = (
    RequestKind.TOKEN_INFO,
    RequestKind.INTROSPECTION,
    RequestKind.REFRESH,
    RequestKind.CODE,
    RequestKind.DEVICE,
    RequestKind.POLL,
    RequestKind.INTAKE,
)
#: Number of uncounted requests in a burst, which fill the caches of a process.
_WARM_UP_REQUESTS = 20
#: Number of bursts before the first pair, so that both web processes get requests.
_WARM_UP_BURSTS = 4
_STOP_SECONDS = 60
_MICROSECONDS = 1_000_000

#: Processor times by process id: of the web processes, and of the processes of Postgres.
_ProcessorTimes = tuple[Mapping[int, float], Mapping[int, float]]


@dataclass(frozen=True, kw_only=True)
class BurstCost:
    """The processor time of a request in a burst, in microseconds."""

    web: float
    postgres: float

    @property
    def both(self) -> float:
        """Total of the web processes and Postgres in microseconds."""
        return self.web + self.postgres


class RunningCheckout:
    """A checkout whose service is running."""

    def __init__(
        self, ready: Mapping[str, Any], postgres_pid: int | None, marker: str = ""
    ) -> None:
        """Store the output of `pair_side`, and which processes of Postgres to count."""
        self._pid, self._port = int(ready["pid"]), int(ready["port"])
        self._postgres_pid, self._marker = postgres_pid, marker
        self._senders = {
            work: ShotSender(_parse_shot(ready["shots"][work]), self._send)
            for work in RequestKind
            if work in ready["shots"]
        }
        self._connection: HTTPConnection | None = None

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Open a new connection that is used for requests until the block ends."""
        self._connection = HTTPConnection("127.0.0.1", self._port, timeout=REQUEST_TIMEOUT_SECONDS)
        with closing(self._connection):
            yield

    def send(self, work: RequestKind, times: int = 1) -> None:
        """Send requests."""
        for _ in range(times):
            self._senders[work].send()

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, str]:
        if self._connection is None:
            raise CannotMeasureError("there is no connection")
        return build_send_function(self._connection)(method, path, headers, body)

    def times(self) -> _ProcessorTimes:
        """Return the processor times of the web processes and of Postgres."""
        pid = self._postgres_pid
        postgres = measure_processor_times(pid, self._marker) if pid else {}
        return measure_processor_times(self._pid, "gunicorn"), postgres


def measure_burst(
    sides: Sequence[RunningCheckout], work: RequestKind, requests: int
) -> Sequence[BurstCost]:
    """Send requests to the sides in turn, and return the processor time per request."""
    with ExitStack() as stack:
        for side in sides:
            stack.enter_context(side.connected())
            side.send(work, _WARM_UP_REQUESTS)
        before = [side.times() for side in sides]
        for _ in range(requests):
            for side in sides:
                side.send(work)
        after = [side.times() for side in sides]
    return [_compute_burst_cost(*times, requests) for times in zip(before, after, strict=True)]


def _compute_burst_cost(
    before: _ProcessorTimes, after: _ProcessorTimes, requests: int
) -> BurstCost:
    web, postgres = (
        compute_seconds_between(then, now) * _MICROSECONDS / requests
        for then, now in zip(before, after, strict=True)
    )
    return BurstCost(web=web, postgres=postgres)


def main() -> None:
    """Measure the selected kinds of requests and print a row for each."""
    given = _read_options()
    # The handler makes sure that Postgres and both services are stopped.
    signal(SIGTERM, lambda *_: sys.exit("terminated"))
    with TemporaryDirectory(prefix="gatebell-pairs-") as name, ExitStack() as stack:
        postgres = (
            stack.enter_context(start_durable_postgres()) if given.database != "sqlite" else None
        )
        sides = []
        for end in ("before", "after"):
            checkout = _prepare_checkout(getattr(given, end), Path(name) / end)
            python = getattr(given, f"python_{end}") or _find_python(checkout)
            url = postgres.databases.new_database() if postgres else ""
            order = {
                "directory": str(Path(name) / f"{end}-instance"),
                "database_url": url,
                "counts": _build_counts(given),
            }
            ready = stack.enter_context(_serve_checkout(checkout, python, order))
            # The processor time of Postgres cannot be divided between two services at the same
            # time.
            marker = get_database_name(url) if given.by_request else ""
            sides.append(RunningCheckout(ready, postgres.pid if postgres else None, marker))
            print_progress(f"{end}: {getattr(given, end)}, Python {_describe_python(python)}")
        _measure_pairs(sides[0], sides[1], given)


def _read_options() -> Namespace:
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
    names = ", ".join(RequestKind)
    parser.add_argument(
        "--only",
        type=parse_request_kinds,
        default=_REQUEST_KINDS,
        help=f"comma-separated kinds of requests: {names}",
    )
    parser.add_argument(
        "--pairs",
        type=parse_positive,
        default=9,
        help="number of pairs of each kind of request (9)",
    )
    parser.add_argument(
        "--requests", type=parse_positive, default=300, help="number of requests in a burst (300)"
    )
    parser.add_argument(
        "--by-request",
        action="store_true",
        help="alternate after each request, and count only the connections of Postgres; on a busy"
        " machine, this varies least for the web processes",
    )
    parser.add_argument("--database", choices=("postgres", "sqlite"), default="postgres")
    return parser.parse_args()


def _build_counts(given: Namespace) -> Mapping[str, int]:
    """Return the number of rows to prepare: codes work once, and devices must not poll too fast."""
    enough = (_WARM_UP_REQUESTS + given.requests) * (given.pairs + _WARM_UP_BURSTS) + 1
    return {
        # The use of a token is stored once a minute, so fewer tokens cause fewer updates.
        "access_tokens": _WARM_UP_REQUESTS,
        "refresh_tokens": _WARM_UP_REQUESTS,
        "codes": enough if RequestKind.CODE in given.only else 1,
        "device_codes": enough if RequestKind.POLL in given.only else 1,
    }


def _prepare_checkout(named: str, into: Path) -> Path:
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


def _describe_python(python: str) -> str:
    # The script is run by path because the checkout may be older than the script.
    asked = (python, "-I", ROOT / "web" / "interpreter.py")
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _find_python(checkout: Path) -> str:
    own = checkout / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


@contextmanager
def _serve_checkout(
    checkout: Path, python: str, order: Mapping[str, object]
) -> Iterator[Mapping[str, Any]]:
    """Run the service of a checkout, and yield the output of `pair_side`."""
    with subprocess.Popen(
        # -P: do not import modules from the folder of the script.
        (python, "-P", _SIDE_SCRIPT),
        cwd=checkout,
        env={**get_inherited_environment(), "PYTHONPATH": str(checkout)},
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


def _parse_shot(described: Mapping[str, Any]) -> Shot:
    return Shot(
        **{
            **described,
            "mode": ValueMode(described["mode"]),
            "values": OneTimeValues(described["values"]),
            "expected": {int(status): texts for status, texts in described["expected"].items()},
        }
    )


def _measure_pairs(before: RunningCheckout, after: RunningCheckout, given: Namespace) -> None:
    print_progress(
        f"\n{given.pairs} pairs of bursts of {given.requests} requests. Values are microseconds of"
        " processor time per request."
    )
    print_progress(
        "Ratios are medians of the pairs, with the lowest and the highest ratio in brackets.\n"
    )
    print_progress(
        "| request | web before | after | ratio | Postgres before | after | ratio | total ratio |"
    )
    print_progress("|---|--:|--:|---|--:|--:|---|---|")
    for work in given.only:
        for _ in range(_WARM_UP_BURSTS):
            for side in (before, after):
                measure_burst([side], work, given.requests // 4 or 1)
        pairs = [
            _measure_pair((before, after), work, given, number) for number in range(given.pairs)
        ]
        web = _format_columns(pairs, lambda burst: burst.web)
        postgres = _format_columns(pairs, lambda burst: burst.postgres)
        both = _format_ratios(pairs, lambda burst: burst.both)
        print_progress(f"| {work} | {web} | {postgres} | {both} |")


def _measure_pair(
    sides: tuple[RunningCheckout, RunningCheckout], work: RequestKind, given: Namespace, number: int
) -> tuple[BurstCost, BurstCost]:
    if given.by_request:
        before, after = measure_burst(sides, work, given.requests)
        return before, after
    bursts = {
        side: measure_burst([side], work, given.requests)[0]
        for side in sides[:: 1 - number % 2 * 2]
    }
    return bursts[sides[0]], bursts[sides[1]]


def _format_columns(
    pairs: Sequence[tuple[BurstCost, BurstCost]], part: Callable[[BurstCost], float]
) -> str:
    first, second = (median(part(pair[end]) for pair in pairs) for end in (0, 1))
    return f"{first:.0f} | {second:.0f} | {_format_ratios(pairs, part)}"


def _format_ratios(
    pairs: Sequence[tuple[BurstCost, BurstCost]], part: Callable[[BurstCost], float]
) -> str:
    ratios = [part(after) / part(before) for before, after in pairs if part(before)]
    if not ratios:
        return ""
    return f"{median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    try:
        main()
    except CannotMeasureError as error:
        sys.exit(str(error))
