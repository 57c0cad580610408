"""Senders that go on sending whatever happens, and remember what they were told."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from threading import Event, Lock

import requests

from tests.live import LiveGatebell
from tests.senders import JSON, Endpoint
from tests.stored import alerts_of

SENDERS = 6


@dataclass
class Answers:
    """What the senders heard."""

    #: Title and number of each alert that was answered 200.
    accepted: dict[str, int] = field(default_factory=dict)
    statuses: set[int] = field(default_factory=set)
    refused: list[requests.Response] = field(default_factory=list)
    slowest: float = 0.0
    lock: Lock = field(default_factory=Lock)

    def note(self, title: str, answer: requests.Response) -> None:
        with self.lock:
            self.statuses.add(answer.status_code)
            self.slowest = max(self.slowest, answer.elapsed.total_seconds())
            if answer.status_code == 200:
                self.accepted[title] = answer.json()[0]["iid"]
            else:
                self.refused.append(answer)


@contextmanager
def load_on(endpoint: Endpoint) -> Iterator[Answers]:
    """Send different alerts from several senders, for as long as the block runs."""
    answers, numbers, end = Answers(), count(), Event()
    with ThreadPoolExecutor(SENDERS) as senders:
        arguments = (end, endpoint, answers, numbers)
        running = [senders.submit(_send_until, *arguments) for _ in range(SENDERS)]
        try:
            yield answers
        finally:
            end.set()
    for sender in running:
        sender.result()


def _send_until(end: Event, endpoint: Endpoint, answers: Answers, numbers: "count[int]") -> None:
    with requests.Session() as session:
        session.trust_env = False
        while not end.is_set():
            title = f"alert {next(numbers)}"
            try:
                answer = session.post(
                    endpoint.url,
                    json={"title": title},
                    headers={**endpoint.bearer, "Content-Type": JSON},
                    timeout=30,
                )
            except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
                continue  # a killed process answers nothing, and promised nothing
            answers.note(title, answer)


def assert_nothing_was_lost(gatebell: LiveGatebell, endpoint: Endpoint, answers: Answers) -> None:
    """Compare what was answered 200 with what is stored."""
    assert answers.accepted
    stored = alerts_of(gatebell, endpoint.project)
    assert len({alert.iid for alert in stored}) == len(stored)
    by_title = {alert.title: alert.iid for alert in stored}
    assert len(by_title) == len(stored)
    assert answers.accepted.items() <= by_title.items()
