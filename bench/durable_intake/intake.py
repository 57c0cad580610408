"""A durable-intake benchmark for any HTTP intake, which sends alerts and counts the stored ones.

Each alert has a unique mark and is sent exactly once. The intake acknowledges an alert with one of
the accepted statuses. Afterwards, each intake's list is read page by page. An item of the list
belongs to the mark that its JSON contains. Acknowledged alerts must be stored exactly once;
unacknowledged alerts may be stored, but not twice.

This module needs only the standard library and `bench.constant_rate`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from itertools import pairwise
from pathlib import Path
from threading import Event
from time import monotonic, sleep, time_ns
from typing import Any
from urllib.parse import urljoin, urlsplit

from bench.constant_rate import DueRequest, Latencies, open_connection, send_at_rate

#: Placeholder for the mark of an alert in the request body.
MARK_PLACEHOLDER = "{mark}"
#: Placeholder for the page number in the URL of a list.
PAGE_PLACEHOLDER = "{page}"
_NEXT_LINK_PATTERN = re.compile(r'<([^>]+)>\s*;[^,]*rel="?next"?')
#: Maximum time in seconds until a list responds again after the last fault.
_COUNT_TIMEOUT_SECONDS = 120
_END_STATUSES = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE})


class CannotCountError(Exception):
    """The stored alerts cannot be counted. The message is the reason."""


@dataclass(frozen=True, kw_only=True)
class StoredList:
    """A list of stored alerts."""

    #: URL of the first page. The next page is at the `Link` with `rel="next"`, or at the next
    #: number of `{page}`.
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Name of the member that contains the items. Empty if the JSON itself is a list.
    items: str = ""
    #: Name of the member of an item that counts its repeats. Empty if there is none.
    times: str = ""
    #: Value of that member for an alert that was stored once.
    once: int = 1


@dataclass(frozen=True, kw_only=True)
class Intake:
    """An endpoint for alerts, and the list of the stored alerts."""

    url: str
    #: JSON value that contains `{mark}`.
    body: Any
    stored: StoredList
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Statuses that acknowledge an alert.
    accepted: Sequence[int] = (200, 201, 202, 204)

    @classmethod
    def read(cls, file: Path) -> "Sequence[Intake]":
        """Read intakes from a JSON file that contains a list."""
        return [
            cls(**{**each, "stored": StoredList(**each["stored"])})
            for each in json.loads(file.read_text(encoding="utf-8"))
        ]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault that was caused while alerts were sent."""

    name: str
    #: Seconds since the first alert.
    at: float
    #: Seconds until the killed processes were started again, unless the service starts them itself.
    took: float
    #: Longest time between two acknowledgements until the next fault, in seconds.
    pause: float


@dataclass(frozen=True, kw_only=True)
class DurabilityResult:
    """The result for all alerts."""

    intakes: int
    rate: float
    seconds: float
    sent: int
    acknowledged: int
    #: Number of unacknowledged alerts by reason.
    failed: Mapping[str, int]
    #: Number of acknowledged alerts that are stored.
    stored: int
    lost: Sequence[str]
    doubled: Sequence[str]
    #: Number of stored alerts without an acknowledgement.
    extra: int
    #: Milliseconds from the due time to the acknowledgement: p50, p95, p99 and maximum.
    latencies: Sequence[float]
    faults: Sequence[Fault]

    @property
    def is_sound(self) -> bool:
        """True if each acknowledged alert is stored once, and no alert is stored twice."""
        return self.acknowledged > 0 and not self.lost and not self.doubled


#: Name of a fault, and the function that causes it and returns after the restart.
FaultFunction = tuple[str, Callable[[], object]]


def run_benchmark(
    intakes: Sequence[Intake], *, rate: float, seconds: float, breakers: Sequence[FaultFunction]
) -> DurabilityResult:
    """Send alerts to the intakes in turn, cause faults meanwhile, and count the stored alerts."""
    run = f"{time_ns():x}"
    latencies, accepted = Latencies(), dict[str, float]()

    def next_request(number: int) -> DueRequest:
        intake, mark = intakes[number % len(intakes)], f"durable-{run}-{number:08d}"

        def judge(status: int, _text: str) -> str:
            if status not in intake.accepted:
                return str(status)
            accepted[mark] = monotonic()
            return ""

        return DueRequest(
            method=intake.method,
            url=intake.url,
            body=json.dumps(intake.body).replace(MARK_PLACEHOLDER, mark).encode(),
            headers={"Content-Type": "application/json", **intake.headers},
            judge=judge,
            into=latencies,
        )

    began = monotonic()
    with _cause_faults_at_intervals(breakers, seconds) as broken:
        send_at_rate(next_request, rate=rate, seconds=seconds)
        ended = monotonic()
    stored = _count_stored(intakes, run)
    return DurabilityResult(
        intakes=len(intakes),
        rate=rate,
        seconds=seconds,
        sent=latencies.sent,
        acknowledged=len(accepted),
        failed=dict(latencies.failed),
        stored=len(accepted.keys() & stored.keys()),
        lost=sorted(accepted.keys() - stored.keys()),
        doubled=sorted(mark for mark, times in stored.items() if times > 1),
        extra=len(stored.keys() - accepted.keys()),
        latencies=latencies.percentiles(50, 95, 99, 100),
        faults=tuple(_cause_faults(broken, sorted(accepted.values()), began, ended)),
    )


def _cause_faults(
    broken: Sequence[tuple[str, float, float]],
    accepted: Sequence[float],
    began: float,
    ended: float,
) -> Iterator[Fault]:
    ends = [*(at for _, at, _ in broken[1:]), ended]
    for (name, at, back), end in zip(broken, ends, strict=True):
        moments = [at, *(moment for moment in accepted if at < moment < end), end]
        pause = max(after - before for before, after in pairwise(moments))
        yield Fault(name=name, at=at - began, took=back - at, pause=pause)


@contextmanager
def _cause_faults_at_intervals(
    breakers: Sequence[FaultFunction], seconds: float
) -> Iterator[list[tuple[str, float, float]]]:
    """Cause the faults at equal intervals; yield the name, start and end of each."""
    done: list[tuple[str, float, float]] = []
    end = Event()
    began = monotonic()

    def go_on() -> None:
        for number, (name, breaks) in enumerate(breakers, start=1):
            due = began + seconds * number / (len(breakers) + 1)
            if end.wait(max(0.0, due - monotonic())):
                return
            at = monotonic()
            breaks()
            done.append((name, at, monotonic()))

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(go_on)
        try:
            yield done
        finally:
            end.set()
            running.result()


def _count_stored(intakes: Sequence[Intake], run: str) -> Counter[str]:
    """Return the number of times that each mark of a run is stored."""
    pattern = re.compile(rf"durable-{run}-\d{{8}}")
    counted: Counter[str] = Counter()
    for stored in {intake.stored.url: intake.stored for intake in intakes}.values():
        for item in _iterate_items(stored):
            found = pattern.search(json.dumps(item))
            if found:
                counted[found[0]] += _count_in_item(item, stored)
    return counted


def _count_in_item(item: Any, stored: StoredList) -> int:
    return 1 + int(item[stored.times]) - stored.once if stored.times else 1


def _iterate_items(stored: StoredList) -> Iterator[Any]:
    number, url = 1, stored.url.replace(PAGE_PLACEHOLDER, "1")
    while url:
        text, link = _read_page(url, stored.headers, is_first=number == 1)
        if not text:
            return
        found = json.loads(text)
        items = found[stored.items] if stored.items else found
        yield from items
        number += 1
        following = _NEXT_LINK_PATTERN.search(link)
        if PAGE_PLACEHOLDER in stored.url:
            url = stored.url.replace(PAGE_PLACEHOLDER, str(number)) if items else ""
        else:
            url = urljoin(url, following[1]) if following else ""


def _read_page(url: str, headers: Mapping[str, str], *, is_first: bool) -> tuple[str, str]:
    """Return the body and the `Link` header of a page; wait while the service starts.

    Some services return an error for a page after the last one. In this case the body is empty.
    """
    deadline = monotonic() + _COUNT_TIMEOUT_SECONDS
    path = url.removeprefix("{0.scheme}://{0.netloc}".format(urlsplit(url)))
    while True:
        try:
            with closing(open_connection(url)) as connection:
                connection.request("GET", path, headers=dict(headers))
                answer = connection.getresponse()
                text = answer.read().decode()
            if answer.status == HTTPStatus.OK:
                return text, answer.headers.get("Link", "")
            if answer.status in _END_STATUSES and not is_first:
                return "", ""
            problem = f"{answer.status} {text[:300]}"
        except (OSError, HTTPException) as error:
            problem = repr(error)
        if monotonic() > deadline:
            raise CannotCountError(f"GET {url}: {problem}")
        sleep(0.5)


def format_result(account: DurabilityResult) -> Iterator[str]:
    """Yield the result as lines of Markdown."""
    p50, p95, p99, longest = account.latencies
    yield (
        f"Alerts sent: {account.sent:,} ({account.rate:g} per second for {account.seconds:g} s)."
        f" Intakes that were used in turn: {account.intakes}."
    )
    yield ""
    yield (
        "| acknowledged | stored | lost | duplicated | failed requests | stored despite failure"
        " | p50 ms | p95 ms | p99 ms | max ms |"
    )
    yield "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    yield (
        f"| {account.acknowledged:,} | {account.stored:,} | {len(account.lost):,}"
        f" | {len(account.doubled):,} | {sum(account.failed.values()):,} | {account.extra:,}"
        f" | {p50:.1f} | {p95:.1f} | {p99:.1f} | {longest:,.0f} |"
    )
    yield ""
    reasons = ", ".join(f"{reason}: {count:,}" for reason, count in sorted(account.failed.items()))
    if reasons:
        yield f"Failed requests by reason: {reasons}."
        yield ""
    if account.faults:
        yield (
            "| killed | at | restarted after"
            " | longest gap between acknowledgements until the next kill |"
        )
        yield "|---|--:|--:|--:|"
        for fault in account.faults:
            yield f"| {fault.name} | {fault.at:.0f} s | {fault.took:.1f} s | {fault.pause:.1f} s |"
        yield ""
