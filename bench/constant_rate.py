"""Sends requests at a constant rate, regardless of the responses (an open loop).

Each request has a time at which it is due, and its latency counts from that time. If all senders
wait for a slow server, a request starts late, and the delay is part of its latency. A closed loop
such as wrk's would send fewer requests in this case and hide the delay (coordinated omission).

This module needs only the standard library.
"""

import ssl
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from itertools import count
from threading import Lock
from time import monotonic, sleep
from urllib.parse import urlsplit

#: Maximum number of requests that wait for their responses at the same time.
MAX_OPEN_REQUESTS = 64
RESPONSE_TIMEOUT_SECONDS = 60
#: Time between the start of the senders and the first request.
_LEAD_SECONDS = 0.2
#: Idle time in seconds after which a connection is opened again, because servers close idle ones.
_IDLE_SECONDS = 2.0
#: Reason for the failure of a request without a response.
NO_RESPONSE = "no response"


def open_connection(url: str, *, timeout: float = RESPONSE_TIMEOUT_SECONDS) -> HTTPConnection:
    """Return a connection to the host of a URL; the certificate is not verified."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return HTTPSConnection(parts.netloc, timeout=timeout, context=context)
    return HTTPConnection(parts.netloc, timeout=timeout)


@dataclass
class Latencies:
    """The latencies of correct responses of one kind in milliseconds, and the failures."""

    right: "array[float]" = field(default_factory=lambda: array("f"))
    #: Number of other responses by status, and of requests without a response.
    failed: Counter[str] = field(default_factory=Counter)
    #: Maximum delay in milliseconds between the due time and the moment at which a sender was free.
    latest: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    def note(self, due: float, sent: float, failure: str) -> None:
        """Record a request with a response; an empty failure means a correct response."""
        took = (monotonic() - due) * 1000
        with self._lock:
            self.latest = max(self.latest, (sent - due) * 1000)
            if failure:
                self.failed[failure] += 1
            else:
                self.right.append(took)

    @property
    def sent(self) -> int:
        """Number of requests."""
        return len(self.right) + self.failed.total()

    def percentiles(self, *wanted: float) -> Sequence[float]:
        """Return percentiles in milliseconds; 100 is the slowest correct response."""
        ordered = sorted(self.right)
        if not ordered:
            return [0.0] * len(wanted)
        last = len(ordered) - 1
        return [ordered[min(last, int(len(ordered) * each / 100))] for each in wanted]


@dataclass(frozen=True, kw_only=True)
class DueRequest:
    """A request that is due."""

    method: str
    url: str
    body: bytes | None
    headers: dict[str, str]
    #: Function that returns why a response with this status and body is wrong, or an empty string.
    judge: Callable[[int, str], str]
    into: Latencies


def send_at_rate(
    next_request: Callable[[int], DueRequest | None],
    *,
    rate: float,
    seconds: float,
    senders: int = MAX_OPEN_REQUESTS,
) -> None:
    """Send requests for `seconds` seconds.

    `next_request` is called with the numbers of the requests, starting at 0. If it returns None, no
    request is sent.
    """
    tickets = _SharedCounter(round(rate * seconds))
    begin = monotonic() + _LEAD_SECONDS

    def send() -> None:
        with closing(_Connections()) as connections:
            for number in tickets:
                due = begin + number / rate
                sleep(max(0.0, due - monotonic()))
                sent = monotonic()
                request = next_request(number)
                if request is not None:
                    request.into.note(due, sent, connections.send_request(request))

    with ThreadPoolExecutor(senders) as pool:
        for each in [pool.submit(send) for _ in range(senders)]:
            each.result()


class _SharedCounter:
    """Numbers that threads share: each thread takes the next one."""

    def __init__(self, total: int) -> None:
        self._numbers = count()
        self._total = total

    def __iter__(self) -> Iterator[int]:
        # Calling `next` on an `itertools.count` is atomic.
        while (number := next(self._numbers)) < self._total:
            yield number


class _Connections:
    """The connections of a sender by host."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[HTTPConnection, float]] = {}

    def send_request(self, request: DueRequest) -> str:
        """Send a request, and return why its response is wrong."""
        parts = urlsplit(request.url)
        place = f"{parts.scheme}://{parts.netloc}"
        path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
        connection = self._connection(place)
        try:
            connection.request(request.method, path, request.body, request.headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        except (OSError, HTTPException) as error:
            connection.close()  # the next request opens it again
            return f"{NO_RESPONSE} ({type(error).__name__})"
        self._open[place] = connection, monotonic()
        return request.judge(answer.status, text)

    def _connection(self, place: str) -> HTTPConnection:
        connection, used_at = self._open.get(place) or (open_connection(place), monotonic())
        if monotonic() - used_at > _IDLE_SECONDS:
            connection.close()
        self._open[place] = connection, monotonic()
        return connection

    def close(self) -> None:
        """Close all connections."""
        for connection, _ in self._open.values():
            connection.close()
