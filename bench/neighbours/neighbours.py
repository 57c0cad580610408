"""Noisy neighbors: users and programs whose load other users should not notice.

Their clients run with a low priority, as if they had separate processors.
"""

import json
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import count
from threading import Event, Thread, get_native_id
from time import monotonic, sleep

import requests

from bench.alert_bodies import metrics_webhook
from bench.neighbours.place import Crowd, Place
from bench.shots import HOLE
from tests.faults.passwords import exchange, sign_in_wrongly
from tests.faults.slow_clients import KINDS, trickling
from tests.support.alerts.senders import JSON
from tests.support.git.raw import head, wants
from tests.support.wire.kept_connection import asked

#: Number of a neighbor's responses by status or by another description.
Answers = Counter[str]
AtWork = Callable[[Place], AbstractContextManager[Answers]]
#: Function that sends one request of a neighbor, and watches for the end of the measurement.
Turn = Callable[[Event], str]

_MIB = 2**20
_BODY_BYTES = 4 * _MIB
_SOURCE_BYTES = 5 * _MIB - 4_096
_SLOW_CLIENTS = 20
_NICENESS = 15
_READ_AT_ONCE = 256 * 1024
_QUIET_SECONDS = 2.0
_PATIENCE_SECONDS = 45
_numbers = count(1)
PAGES = "pages"


@contextmanager
def _going_on(*turns: Turn) -> Iterator[Answers]:
    """Repeat each function for the duration of the block, and count the results."""
    answers, end = Answers(), Event()

    def go_on(turn: Turn) -> None:
        os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICENESS)
        while not end.is_set():
            try:
                said = turn(end)
            except (OSError, requests.RequestException) as error:
                said = type(error).__name__
                end.wait(0.1)
            answers[said] += 1

    threads = [Thread(target=go_on, args=(turn,)) for turn in turns]
    for each in threads:
        each.start()
    try:
        yield answers
    finally:
        end.set()
        for each in threads:
            each.join()


@contextmanager
def slow_clients(place: Place) -> Iterator[Answers]:
    """Send headers and bodies one byte per second."""
    with ExitStack() as opened:
        for kind in KINDS.values():
            crowd = _SLOW_CLIENTS // len(KINDS)
            said = kind(place.endpoint)
            opened.enter_context(trickling(place.live.port, said, crowd, pause=1.0))
        yield Answers()


def password_storm(place: Place) -> AbstractContextManager[Answers]:
    """Try correct and wrong passwords."""

    def turn(ask: Callable[..., int], _end: Event) -> str:
        return str(ask(place.live, place.owner))

    return _going_on(*[partial(turn, ask) for ask in (sign_in_wrongly, exchange)] * 3)


def clones(place: Place) -> AbstractContextManager[Answers]:
    """Clone a large repository repeatedly, with four clones at a time."""
    repository = place.repository
    body = wants(repository.commit)
    length = f"Content-Length: {len(body)}"
    given = (repository.project, repository.token, length, "Connection: close")
    request = head("git-upload-pack", *given) + body

    def turn(end: Event) -> str:
        return _downloaded(place, request, end)

    return _going_on(*[turn] * 4)


def _downloaded(place: Place, request: bytes, end: Event) -> str:
    """Read a response without keeping it, and stop at the end of the measurement."""
    with socket.create_connection(("127.0.0.1", place.live.port), timeout=60) as client:
        client.sendall(request)
        first = client.recv(_READ_AT_ONCE)
        room = bytearray(_READ_AT_ONCE)
        while not end.is_set():
            if not client.recv_into(room):
                return first.partition(b" ")[2][:3].decode("ascii", errors="replace")
    return "incomplete"


def large_alerts(place: Place) -> AbstractContextManager[Answers]:
    """Post alerts of 4 MB with many fields, two at a time."""
    fields = {f"field {number}": "x" * 200 for number in range(_BODY_BYTES // 220)}
    rest = json.dumps(fields)[1:].encode()

    def turn(_end: Event) -> str:
        title = f'{{"title": "large {next(_numbers)}", '.encode()
        return _posted(place, place.endpoint.path, place.endpoint.bearer, title + rest)

    return _going_on(turn, turn)


def large_webhooks(place: Place) -> AbstractContextManager[Answers]:
    """Post webhooks of 4 MB, each with thousands of new alerts."""
    one = len(metrics_webhook(2, HOLE)) - len(metrics_webhook(1, HOLE))
    body = metrics_webhook(_BODY_BYTES // (one + 20), HOLE)

    def turn(_end: Event) -> str:
        sent = body.replace(HOLE, f"many{next(_numbers)}x").encode()
        return _posted(place, place.metrics.path, place.metrics.bearer, sent)

    return _going_on(turn)


def _posted(place: Place, path: str, bearer: Mapping[str, str], body: bytes) -> str:
    return str(place.ask("POST", path, {"Content-Type": JSON, **bearer}, body))


_SEARCHES = (
    "?status=all&search=DiskFull",
    "?status=all&search=web+Production",
    "?status=all&search=zebra",
    "?status=all&sort=severity",
)


def searches(place: Place) -> AbstractContextManager[Answers]:
    """Search the alerts of a project and of all projects, as four users at a time."""
    addresses = (f"/{place.endpoint.project}/-/alerts", "/-/alerts")
    given = {"Cookie": place.cookies}

    def turn(_end: Event) -> str:
        number = next(_numbers)
        query = _SEARCHES[number % len(_SEARCHES)]
        return str(place.ask("GET", addresses[number // len(_SEARCHES) % 2] + query, given))

    return _going_on(*[turn] * 4)


def exports(place: Place) -> AbstractContextManager[Answers]:
    """Export the alerts of a project as a file, as two users at a time."""
    path = f"/{place.endpoint.project}/-/alerts/export.csv?status=all"
    request = asked(path, f"Cookie: {place.cookies}", "Connection: close")

    def turn(end: Event) -> str:
        return _downloaded(place, request, end)

    return _going_on(turn, turn)


def release_checks(place: Place) -> AbstractContextManager[Answers]:
    """Send 5 MB of source code to the release checker, with three clients at a time."""
    line = "curl --silent https://gate.example/api/v4/projects/$ID/issues?private_token=$T\n"
    content = line * (_SOURCE_BYTES // (len(line) + 1))
    body = json.dumps({"name": "deploy.sh", "content": content}).encode()

    def turn(_end: Event) -> str:
        return _posted(place, "/api/v4/releases/check", {}, body)

    return _going_on(*[turn] * 3)


def page_everybody(crowd: Crowd) -> str:
    """Send the alerts that page all users, and return the status of the response."""
    webhook = json.loads(metrics_webhook(crowd.policies, f"page{next(_numbers)}x"))
    for number, alert in enumerate(webhook["alerts"]):
        alert["labels"]["team"] = f"team-{number}"
    return str(crowd.endpoint.post(json.dumps(webhook).encode()).status_code)


@contextmanager
def pages(place: Place) -> Iterator[Answers]:
    """Page all users, and wait at the end until all messages have been sent."""
    crowd = place.crowd
    before, answers = crowd.postbox.taken, Answers()
    answers[page_everybody(crowd)] += 1
    yield answers
    _wait_for_quiet(lambda: crowd.postbox.taken, before + crowd.people)
    answers["messages"] += crowd.postbox.taken - before


def _wait_for_quiet(taken: Callable[[], int], wanted: int) -> None:
    """Wait until `wanted` messages have arrived, or no further ones arrive."""
    deadline, seen, seen_at = monotonic() + _PATIENCE_SECONDS, taken(), monotonic()
    while taken() < wanted and monotonic() < deadline:
        sleep(0.1)
        if taken() != seen:
            seen, seen_at = taken(), monotonic()
        elif seen and monotonic() - seen_at > 10 * _QUIET_SECONDS:
            return


@contextmanager
def nobody(place: Place) -> Iterator[Answers]:
    """Do nothing, to measure the difference between equal runs."""
    del place
    yield Answers()


#: Neighbors by their command-line names, with descriptions.
NEIGHBOURS: Mapping[str, tuple[str, AtWork]] = {
    "nobody": ("none (difference between equal runs)", nobody),
    "slow": (f"{_SLOW_CLIENTS} clients that send one byte per second", slow_clients),
    "passwords": ("six users who sign in repeatedly", password_storm),
    "clones": ("four clones of a large repository", clones),
    "large-alerts": ("two senders of alerts of 4 MB", large_alerts),
    "large-webhooks": ("a sender of webhooks of 4 MB", large_webhooks),
    "searches": ("four users who search alerts", searches),
    "exports": ("two users who export all alerts", exports),
    "release-checks": ("three release checks of 5 MB of source code", release_checks),
    PAGES: ("alerts that page many users", pages),
}
