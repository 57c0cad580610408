"""Measures how long requests fail while a Postgres standby replaces a killed primary.

The standby is promoted as soon as the primary is gone. The time that a cluster manager needs to
detect the failure is not included. Replication is asynchronous, which is the default.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from itertools import count
from pathlib import Path
from threading import Event
from time import monotonic, sleep

import psycopg

from bench.constant_rate import open_connection
from bench.gatebell import WORKERS
from bench.gatebell_seed import seed_gatebell
from bench.processes import kill_process_family
from bench.samples import CannotMeasureError
from bench.seed_counts import Counts
from tests.support.accounts.people import make_project, settings_of
from tests.support.alerts.senders import JSON, connect
from tests.support.database.standby import Server, primary_with_standby, url_of_both
from tests.support.service.live import LiveGatebell, running
from web.database.schema import migrate_to_newest

_MINIMAL_COUNTS = Counts(access_tokens=1, refresh_tokens=1, codes=1, device_codes=1)
_PAUSE_SECONDS = 0.02
#: Seconds with responses before the primary is killed and after the standby has taken over.
_CALM_SECONDS = 2.0
_RECOVERY_TIMEOUT_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class Failover:
    """The result of a failover. Times are in seconds since the primary was killed."""

    #: Time until the first correct response to a request that was sent after the kill.
    tokens: float
    alerts: float
    #: Number of alerts that were acknowledged before the kill, and of those missing on the standby.
    acknowledged: int
    lost: int


@dataclass
class _FailoverVisitor:
    """Sends a request repeatedly, and records the times of correct responses."""

    url: str
    method: str
    path: str
    headers: Mapping[str, str]
    bodies: Iterator[str] | None = None
    #: Time and body of each correct response, by the time at which its request was sent.
    right: dict[float, tuple[float, str]] = field(default_factory=dict)

    def visit_until(self, end: Event) -> None:
        """Send requests until the event is set."""
        while not end.wait(_PAUSE_SECONDS):
            body, sent = next(self.bodies) if self.bodies else "", monotonic()
            with closing(open_connection(self.url)) as connection:
                try:
                    connection.request(self.method, self.path, body or None, dict(self.headers))
                    answer = connection.getresponse()
                    answer.read()
                except (OSError, HTTPException):
                    continue
            if answer.status == HTTPStatus.OK:
                self.right[sent] = monotonic(), body

    def first_after(self, moment: float) -> float | None:
        """Return the time of the first correct response to a request sent after a moment."""
        return next((at for sent, (at, _) in tuple(self.right.items()) if sent > moment), None)


def measure_failovers(directory: Path, times: int) -> Sequence[Failover]:
    """Run `times` failovers, each with a new pair of servers."""
    found = []
    for number in range(times):
        with primary_with_standby(None) as (primary, standby):
            found.append(_measure_failover(directory / f"failover-{number}", primary, standby))
        sys.stdout.write(f"  token checks after {found[-1].tokens:.1f} s\n")
    return found


def _measure_failover(directory: Path, primary: Server, standby: Server) -> Failover:
    directory.mkdir(parents=True)
    url = url_of_both(primary, standby)
    live = LiveGatebell(instance_path=directory, database_url=url, WEB_CONCURRENCY=str(WORKERS))
    migrate_to_newest(settings_of(live))
    seed, owner = seed_gatebell(live, _MINIMAL_COUNTS)
    endpoint = connect(live, make_project(live, owner))
    live.close()
    bearer = {"Authorization": f"Bearer {seed.access_tokens[0]}"}
    tokens = _FailoverVisitor(live.url, "GET", "/oauth/token/info", bearer)
    titles = (json.dumps({"title": f"failover {number}"}) for number in count())
    headers = {"Content-Type": JSON, **endpoint.bearer}
    alerts = _FailoverVisitor(live.url, "POST", endpoint.path, headers, titles)
    with running(live), _run_visitors(tokens, alerts):
        sleep(_CALM_SECONDS)
        kill_process_family(primary.pid)
        killed = monotonic()
        (primary.data / "postmaster.pid").unlink()
        standby.control("promote")
        back = [_wait_for_recovery(each, killed) - killed for each in (tokens, alerts)]
        sleep(_CALM_SECONDS)
    before = {json.loads(body)["title"] for at, body in alerts.right.values() if at < killed}
    with psycopg.connect(standby.url) as connection:
        stored = {row[0] for row in connection.execute("SELECT title FROM alerts")}
    return Failover(
        tokens=back[0],
        alerts=back[1],
        acknowledged=len(before),
        lost=len(before - stored),
    )


@contextmanager
def _run_visitors(*visitors: _FailoverVisitor) -> Iterator[None]:
    end = Event()
    with ThreadPoolExecutor(len(visitors)) as pool:
        try:
            visits = [pool.submit(visitor.visit_until, end) for visitor in visitors]
            yield
        finally:
            end.set()
    for visit in visits:
        visit.result()


def _wait_for_recovery(visitor: _FailoverVisitor, killed: float) -> float:
    deadline = monotonic() + _RECOVERY_TIMEOUT_SECONDS
    while (at := visitor.first_after(killed)) is None:
        if monotonic() > deadline:
            raise CannotMeasureError(f"no correct response from {visitor.path} after the failover")
        sleep(_PAUSE_SECONDS)
    return at
