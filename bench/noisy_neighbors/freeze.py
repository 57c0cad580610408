"""Measures requests while the database is frozen for some seconds."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Event, Thread
from time import monotonic, sleep

from bench.noisy_neighbors.neighbor_service import NeighborService
from bench.shots import VALUE_PLACEHOLDER
from bench.workloads import RequestKind
from tests.faults.processes import frozen
from tests.support.alerts.senders import JSON

_PAUSE_SECONDS = 0.02
_WARM_UP_SECONDS = 1.0
_RECOVERY_TIMEOUT_SECONDS = 30.0
#: Number of clients for each kind of request.
_CLIENTS_PER_KIND = 4


@dataclass
class FreezeWaits:
    """The results of the clients for one kind of request."""

    what: str
    #: Number of correct and of other responses while the database was frozen.
    served: int = 0
    refused: int = 0
    #: Longest time in seconds for a response to a request that started during this period.
    longest: float = 0.0
    #: Seconds from the return of the database to the first correct response to a later request, or
    #: None if there was no such response.
    back_after: float | None = None
    #: Number of wrong responses and broken connections afterwards, while it was measured.
    errors_after: int = 0


@dataclass
class FreezeResult:
    """The results with one of the databases."""

    database: str
    how: str
    seconds: float
    waits: list[FreezeWaits] = field(default_factory=list)


@dataclass
class _FreezeTimes:
    begins: float = float("inf")
    ends: float = float("inf")


def measure_freeze(service: NeighborService, seconds: float) -> FreezeResult:
    """Freeze the database for `seconds` seconds while clients send requests."""
    how = "stopped (SIGSTOP)" if service.postgres else "locked by another program"
    result = FreezeResult(database=service.database, how=how, seconds=seconds)
    end, moments = Event(), _FreezeTimes()
    threads = []
    for what, ask in _build_requests(service).items():
        waits = FreezeWaits(what)
        result.waits.append(waits)
        for number in range(_CLIENTS_PER_KIND):
            given = (ask, number, waits, moments, end)
            threads.append(Thread(target=_send_until_end, args=given))
    for each in threads:
        each.start()
    sleep(_WARM_UP_SECONDS)
    with _freeze_database(service):
        moments.begins = monotonic()
        sleep(seconds)
    moments.ends = monotonic()
    while any(each.back_after is None for each in result.waits):
        if monotonic() - moments.ends > _RECOVERY_TIMEOUT_SECONDS:
            break
        sleep(_PAUSE_SECONDS)
    sleep(2 * _WARM_UP_SECONDS)
    end.set()
    for each in threads:
        each.join()
    return result


def _freeze_database(service: NeighborService) -> AbstractContextManager[None]:
    return frozen(service.postgres) if service.postgres else _hold_write_lock(service)


@contextmanager
def _hold_write_lock(service: NeighborService) -> Iterator[None]:
    """Hold the lock that every writer needs."""
    path = service.live.database_url.removeprefix("sqlite:///")
    connection = sqlite3.connect(path, isolation_level=None, timeout=_RECOVERY_TIMEOUT_SECONDS)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


def _build_requests(service: NeighborService) -> dict[str, Callable[[int], int]]:
    """Return functions that send the requests, given the number of a client."""
    token = service.shots[RequestKind.TOKEN_INFO].values.every[0]
    bearer = {"Authorization": f"Bearer {token}"}
    body = service.shots[RequestKind.INTAKE].body
    headers = {"Content-Type": JSON, **service.endpoint.bearer}

    def alert(number: int) -> int:
        unique = f"still {number} {monotonic()}"
        sent = body.replace(VALUE_PLACEHOLDER, unique).encode()
        return service.ask("POST", service.endpoint.path, headers, sent)

    return {
        "new alert": alert,
        "token check": lambda _: service.ask("GET", "/oauth/token/info", bearer),
        "`/healthz` (needs no database)": lambda _: service.ask("GET", "/healthz", {}),
    }


def _send_until_end(
    ask: Callable[[int], int], number: int, waits: FreezeWaits, moments: _FreezeTimes, end: Event
) -> None:
    while not end.wait(_PAUSE_SECONDS):
        began = monotonic()
        try:
            status = ask(number)
        except OSError:
            status = 0
        ended = monotonic()
        is_right = status == HTTPStatus.OK
        if moments.begins <= began < moments.ends:
            waits.longest = max(waits.longest, ended - began)
            if ended < moments.ends:
                waits.served += is_right
                waits.refused += not is_right
        elif began >= moments.ends:
            waits.errors_after += not is_right
            if is_right and waits.back_after is None:
                waits.back_after = ended - moments.ends
