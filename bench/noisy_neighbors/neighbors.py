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

from bench.alert_bodies import build_metrics_webhook
from bench.noisy_neighbors.neighbor_service import NeighborService, PagedUsers
from bench.shots import VALUE_PLACEHOLDER
from tests.faults.passwords import exchange, sign_in_wrongly
from tests.faults.slow_clients import KINDS, trickling
from tests.support.alerts.senders import JSON
from tests.support.git.raw import build_clone_body, build_request_headers
from tests.support.wire.kept_connection import build_request_head

#: Number of a neighbor's responses by status or by another description.
ResponseCounts = Counter[str]
NeighborFunction = Callable[[NeighborService], AbstractContextManager[ResponseCounts]]
#: Function that sends one request of a neighbor, and watches for the end of the measurement.
TurnFunction = Callable[[Event], str]

_MIB = 2**20
_BODY_BYTES = 4 * _MIB
_SOURCE_BYTES = 5 * _MIB - 4_096
_SLOW_CLIENTS = 20
_NICENESS = 15
_MAX_READ_BYTES = 256 * 1024
_QUIET_SECONDS = 2.0
_RESPONSE_TIMEOUT_SECONDS = 45
_alert_numbers = count(1)
PAGES = "pages"


@contextmanager
def _repeat_turns(*turns: TurnFunction) -> Iterator[ResponseCounts]:
    """Repeat each function for the duration of the block, and count the results."""
    answers, end = ResponseCounts(), Event()

    def go_on(turn: TurnFunction) -> None:
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
def run_slow_clients(service: NeighborService) -> Iterator[ResponseCounts]:
    """Send headers and bodies one byte per second."""
    with ExitStack() as opened:
        for kind in KINDS.values():
            crowd = _SLOW_CLIENTS // len(KINDS)
            said = kind(service.endpoint)
            opened.enter_context(trickling(service.live.port, said, crowd, pause=1.0))
        yield ResponseCounts()


def run_password_storm(service: NeighborService) -> AbstractContextManager[ResponseCounts]:
    """Try correct and wrong passwords."""

    def turn(ask: Callable[..., int], _end: Event) -> str:
        return str(ask(service.live, service.owner))

    return _repeat_turns(*[partial(turn, ask) for ask in (sign_in_wrongly, exchange)] * 3)


def run_clones(service: NeighborService) -> AbstractContextManager[ResponseCounts]:
    """Clone a large repository repeatedly, with four clones at a time."""
    repository = service.repository
    body = build_clone_body(repository.commit)
    length = f"Content-Length: {len(body)}"
    given = (repository.project, repository.token, length, "Connection: close")
    request = build_request_headers("git-upload-pack", *given) + body

    def turn(end: Event) -> str:
        return _download(service, request, end)

    return _repeat_turns(*[turn] * 4)


def _download(service: NeighborService, request: bytes, end: Event) -> str:
    """Read a response without keeping it, and stop at the end of the measurement."""
    with socket.create_connection(("127.0.0.1", service.live.port), timeout=60) as client:
        client.sendall(request)
        first = client.recv(_MAX_READ_BYTES)
        room = bytearray(_MAX_READ_BYTES)
        while not end.is_set():
            if not client.recv_into(room):
                return first.partition(b" ")[2][:3].decode("ascii", errors="replace")
    return "incomplete"


def send_large_alerts(service: NeighborService) -> AbstractContextManager[ResponseCounts]:
    """Post alerts of 4 MB with many fields, two at a time."""
    fields = {f"field {number}": "x" * 200 for number in range(_BODY_BYTES // 220)}
    rest = json.dumps(fields)[1:].encode()

    def turn(_end: Event) -> str:
        title = f'{{"title": "large {next(_alert_numbers)}", '.encode()
        return _post_body(service, service.endpoint.path, service.endpoint.bearer, title + rest)

    return _repeat_turns(turn, turn)


def send_large_webhooks(service: NeighborService) -> AbstractContextManager[ResponseCounts]:
    """Post webhooks of 4 MB, each with thousands of new alerts."""
    one = len(build_metrics_webhook(2, VALUE_PLACEHOLDER)) - len(
        build_metrics_webhook(1, VALUE_PLACEHOLDER)
    )
    body = build_metrics_webhook(_BODY_BYTES // (one + 20), VALUE_PLACEHOLDER)

    def turn(_end: Event) -> str:
        sent = body.replace(VALUE_PLACEHOLDER, f"many{next(_alert_numbers)}x").encode()
        return _post_body(service, service.metrics.path, service.metrics.bearer, sent)

    return _repeat_turns(turn)


def _post_body(service: NeighborService, path: str, bearer: Mapping[str, str], body: bytes) -> str:
    return str(service.ask("POST", path, {"Content-Type": JSON, **bearer}, body))


_SEARCH_PATHS = (
    "?status=all&search=DiskFull",
    "?status=all&search=web+Production",
    "?status=all&search=zebra",
    "?status=all&sort=severity",
)


def run_searches(service: NeighborService) -> AbstractContextManager[ResponseCounts]:
    """Search the alerts of a project and of all projects, as four users at a time."""
    addresses = (f"/{service.endpoint.project}/-/alerts", "/-/alerts")
    given = {"Cookie": service.cookies}

    def turn(_end: Event) -> str:
        number = next(_alert_numbers)
        query = _SEARCH_PATHS[number % len(_SEARCH_PATHS)]
        return str(service.ask("GET", addresses[number // len(_SEARCH_PATHS) % 2] + query, given))

    return _repeat_turns(*[turn] * 4)


def run_exports(service: NeighborService) -> AbstractContextManager[ResponseCounts]:
    """Export the alerts of a project as a file, as two users at a time."""
    path = f"/{service.endpoint.project}/-/alerts/export.csv?status=all"
    request = build_request_head(path, f"Cookie: {service.cookies}", "Connection: close")

    def turn(end: Event) -> str:
        return _download(service, request, end)

    return _repeat_turns(turn, turn)


def run_release_checks(service: NeighborService) -> AbstractContextManager[ResponseCounts]:
    """Send 5 MB of source code to the release checker, with three clients at a time."""
    line = "curl --silent https://gate.example/api/v4/projects/$ID/issues?private_token=$T\n"
    content = line * (_SOURCE_BYTES // (len(line) + 1))
    body = json.dumps({"name": "deploy.sh", "content": content}).encode()

    def turn(_end: Event) -> str:
        return _post_body(service, "/api/v4/releases/check", {}, body)

    return _repeat_turns(*[turn] * 3)


def send_paging_alerts(crowd: PagedUsers) -> str:
    """Send the alerts that page all users, and return the status of the response."""
    webhook = json.loads(build_metrics_webhook(crowd.policies, f"page{next(_alert_numbers)}x"))
    for number, alert in enumerate(webhook["alerts"]):
        alert["labels"]["team"] = f"team-{number}"
    return str(crowd.endpoint.post(json.dumps(webhook).encode()).status_code)


@contextmanager
def page_all_users(service: NeighborService) -> Iterator[ResponseCounts]:
    """Page all users, and wait at the end until all messages have been sent."""
    crowd = service.crowd
    before, answers = crowd.postbox.taken, ResponseCounts()
    answers[send_paging_alerts(crowd)] += 1
    yield answers
    _wait_for_quiet(lambda: crowd.postbox.taken, before + crowd.people)
    answers["messages"] += crowd.postbox.taken - before


def _wait_for_quiet(taken: Callable[[], int], wanted: int) -> None:
    """Wait until `wanted` messages have arrived, or no further ones arrive."""
    deadline, seen, seen_at = monotonic() + _RESPONSE_TIMEOUT_SECONDS, taken(), monotonic()
    while taken() < wanted and monotonic() < deadline:
        sleep(0.1)
        if taken() != seen:
            seen, seen_at = taken(), monotonic()
        elif seen and monotonic() - seen_at > 10 * _QUIET_SECONDS:
            return


@contextmanager
def run_no_neighbor(service: NeighborService) -> Iterator[ResponseCounts]:
    """Do nothing, to measure the difference between identical runs."""
    del service
    yield ResponseCounts()


#: Neighbors by their command-line names, with descriptions.
NEIGHBORS: Mapping[str, tuple[str, NeighborFunction]] = {
    "nobody": ("none (difference between identical runs)", run_no_neighbor),
    "slow": (f"{_SLOW_CLIENTS} clients that send one byte per second", run_slow_clients),
    "passwords": ("six users who sign in repeatedly", run_password_storm),
    "clones": ("four clones of a large repository", run_clones),
    "large-alerts": ("two senders of alerts of 4 MB", send_large_alerts),
    "large-webhooks": ("a sender of webhooks of 4 MB", send_large_webhooks),
    "searches": ("four users who search alerts", run_searches),
    "exports": ("two users who export all alerts", run_exports),
    "release-checks": ("three release checks of 5 MB of source code", run_release_checks),
    PAGES: ("alerts that page many users", page_all_users),
}
