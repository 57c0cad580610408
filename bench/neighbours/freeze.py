"""Measures requests while the database is frozen for some seconds."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Event, Thread
from time import monotonic, sleep

from bench.neighbours.place import Place
from bench.shots import HOLE
from bench.workloads import Work
from tests.faults.processes import frozen
from tests.support.alerts.senders import JSON

_PAUSE_SECONDS = 0.02
_WARM_SECONDS = 1.0
_PATIENCE_SECONDS = 30.0
#: Number of clients for each kind of request.
_ASKING = 4


@dataclass
class Waits:
    """The results of the clients for one kind of request."""

    what: str
    #: Number of correct and of other responses while the database was frozen.
    served: int = 0
    refused: int = 0
    #: Longest time in seconds for a response to a request that started during this period.
    longest: float = 0.0
    #: Seconds from the return of the database to the first correct response to a later request.
    #: None if there was none.
    back_after: float | None = None
    #: Number of wrong responses and broken connections afterwards, while it was measured.
    errors_after: int = 0


@dataclass
class Stillness:
    """The results with one of the databases."""

    database: str
    how: str
    seconds: float
    waits: list[Waits] = field(default_factory=list)


@dataclass
class _Moments:
    begins: float = float("inf")
    ends: float = float("inf")


def stand_still(place: Place, seconds: float) -> Stillness:
    """Freeze the database for `seconds` seconds while clients send requests."""
    how = "stopped (SIGSTOP)" if place.postgres else "locked by another program"
    result = Stillness(database=place.database, how=how, seconds=seconds)
    end, moments = Event(), _Moments()
    threads = []
    for what, ask in _asked(place).items():
        waits = Waits(what)
        result.waits.append(waits)
        for number in range(_ASKING):
            given = (ask, number, waits, moments, end)
            threads.append(Thread(target=_go_on, args=given))
    for each in threads:
        each.start()
    sleep(_WARM_SECONDS)
    with _standing(place):
        moments.begins = monotonic()
        sleep(seconds)
    moments.ends = monotonic()
    while any(each.back_after is None for each in result.waits):
        if monotonic() - moments.ends > _PATIENCE_SECONDS:
            break
        sleep(_PAUSE_SECONDS)
    sleep(2 * _WARM_SECONDS)
    end.set()
    for each in threads:
        each.join()
    return result


def _standing(place: Place) -> AbstractContextManager[None]:
    return frozen(place.postgres) if place.postgres else _locked(place)


@contextmanager
def _locked(place: Place) -> Iterator[None]:
    """Hold the lock that every writer needs."""
    path = place.live.database_url.removeprefix("sqlite:///")
    connection = sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE_SECONDS)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


def _asked(place: Place) -> dict[str, Callable[[int], int]]:
    """Return functions that send the requests, given the number of a client."""
    token = place.shots[Work.TOKEN_INFO].values.every[0]
    bearer = {"Authorization": f"Bearer {token}"}
    body = place.shots[Work.INTAKE].body
    headers = {"Content-Type": JSON, **place.endpoint.bearer}

    def alert(number: int) -> int:
        unique = f"still {number} {monotonic()}"
        sent = body.replace(HOLE, unique).encode()
        return place.ask("POST", place.endpoint.path, headers, sent)

    return {
        "new alert": alert,
        "token check": lambda _: place.ask("GET", "/oauth/token/info", bearer),
        "`/healthz` (needs no database)": lambda _: place.ask("GET", "/healthz", {}),
    }


def _go_on(
    ask: Callable[[int], int], number: int, waits: Waits, moments: _Moments, end: Event
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
