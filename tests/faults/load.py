"""Senders that continue during a fault, and record the responses."""

import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from threading import Event, Lock, Thread
from time import monotonic, sleep

import requests

from tests.faults.account import KEPT, Account, doubled_in
from tests.support.alerts.senders import JSON, Endpoint
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell

SENDERS = 6
_LOAD_SECONDS = 60
_VISIT_PAUSE_SECONDS = 0.1
_loads = count(1)


@dataclass
class Answers:
    """Collects the responses that the senders got."""

    #: Beginning of this load's titles, which no other load uses.
    name: str
    #: Title and number of each alert that was answered with 200.
    accepted: dict[str, int] = field(default_factory=dict)
    answered: Counter[int] = field(default_factory=Counter)
    #: Connections that ended without a response, for example of a killed process.
    reset: int = 0
    #: Connections that were not accepted.
    unheard: int = 0
    refused: list[requests.Response] = field(default_factory=list)
    slowest: float = 0.0
    #: Longest wait of a visitor who requested a page meanwhile.
    others_wait: float | None = None
    #: Statuses of the visitor's responses.
    visits: Counter[int] = field(default_factory=Counter)
    recovery: float | None = None
    load: str = ""
    _ended_at: float | None = None
    #: Pause between two alerts of a sender, so that other requests get a turn.
    pause_seconds: float = 0.01
    lock: Lock = field(default_factory=Lock)

    def note(self, title: str, answer: requests.Response) -> None:
        with self.lock:
            self.answered[answer.status_code] += 1
            self.slowest = max(self.slowest, answer.elapsed.total_seconds())
            if answer.status_code == 200:
                self.accepted[title] = answer.json()[0]["iid"]
                self._note_recovery()
            else:
                self.refused.append(answer)

    def fault_ends(self) -> None:
        """Measure the time until the next accepted alert; a kill ends when it begins."""
        with self.lock:
            self._ended_at = monotonic()

    def _note_recovery(self) -> None:
        if self._ended_at is not None:
            self.recovery = max(self.recovery or 0.0, monotonic() - self._ended_at)
            self._ended_at = None

    def note_silence(self, error: requests.RequestException) -> None:
        is_unheard = "refused" in str(error)
        with self.lock:
            self.unheard += is_unheard
            self.reset += not is_unheard

    def wait_for(self, more: int) -> None:
        """Wait until this number of additional alerts is accepted, on slow machines as well."""
        wanted, deadline = len(self.accepted) + more, monotonic() + _LOAD_SECONDS
        while len(self.accepted) < wanted:
            assert monotonic() < deadline, self.answered
            sleep(0.02)

    @property
    def statuses(self) -> set[int]:
        return set(self.answered)


@contextmanager
def load_on(endpoint: Endpoint, *, kept: bool = True) -> Iterator[Answers]:
    """Send different alerts from several senders for the duration of the block.

    Each sender keeps its connection, or opens a new one for each alert. Meanwhile, a visitor
    requests a page.
    """
    answers, numbers, end = Answers(f"load {next(_loads)}, alert "), count(), Event()
    answers.load = f"senders: {SENDERS}, {'keep-alive' if kept else 'new'} connections"
    visitor = Thread(target=_visit_until, args=(end, endpoint, answers))
    visitor.start()
    with ThreadPoolExecutor(SENDERS) as senders:
        arguments = (end, endpoint, answers, numbers)
        send = _send_until if kept else _send_anew_until
        running = [senders.submit(send, *arguments) for _ in range(SENDERS)]
        try:
            yield answers
        finally:
            end.set()
    visitor.join()
    assert 500 not in answers.visits
    for sender in running:
        sender.result()


def _visit_until(end: Event, endpoint: Endpoint, answers: Answers) -> None:
    """Request a page regularly, and record the longest wait and the statuses."""
    with requests.Session() as browser:
        browser.trust_env = False
        while not end.wait(_VISIT_PAUSE_SECONDS):
            began = monotonic()
            with suppress(requests.RequestException):
                answer = browser.get(f"{endpoint.service}/users/sign_in", timeout=30)
                answers.visits[answer.status_code] += 1
            answers.others_wait = max(answers.others_wait or 0.0, monotonic() - began)


def _send_until(end: Event, endpoint: Endpoint, answers: Answers, numbers: "count[int]") -> None:
    with requests.Session() as session:
        while not end.is_set():
            _send(session, endpoint, answers, f"{answers.name}{next(numbers)}")


def _send_anew_until(
    end: Event, endpoint: Endpoint, answers: Answers, numbers: "count[int]"
) -> None:
    while not end.is_set():
        with requests.Session() as session:
            session.headers["Connection"] = "close"
            _send(session, endpoint, answers, f"{answers.name}{next(numbers)}")


def _send(session: requests.Session, endpoint: Endpoint, answers: Answers, title: str) -> None:
    session.trust_env = False
    try:
        answer = session.post(
            endpoint.url,
            json={"title": title},
            headers={**endpoint.bearer, "Content-Type": JSON},
            timeout=30,
        )
    except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
        answers.note_silence(error)
        sleep(0.02)
    else:
        answers.note(title, answer)
        sleep(answers.pause_seconds)


def assert_nothing_was_lost(
    gatebell: LiveGatebell, endpoint: Endpoint, answers: Answers
) -> Account:
    """Compare the alerts answered with 200 to the stored ones; return and print the account."""
    everything = list_stored_alerts(gatebell, endpoint.project)
    stored = [alert for alert in everything if alert.title.startswith(answers.name)]
    by_title = {alert.title: alert.iid for alert in stored}
    account = Account(
        database="SQLite" if gatebell.database_url.startswith("sqlite") else "Postgres",
        load=answers.load,
        sent=sum(answers.answered.values()) + answers.reset + answers.unheard,
        answered=answers.answered,
        reset=answers.reset,
        unheard=answers.unheard,
        stored=len(stored),
        lost=len(answers.accepted.items() - by_title.items()),
        doubled=doubled_in(alert.title for alert in stored),
        longest_wait=answers.slowest,
        others_wait=answers.others_wait,
        recovery=answers.recovery,
    )
    KEPT.accounts.append(account)
    sys.stdout.write(f"\n{account}\n")
    assert answers.accepted
    assert (account.lost, account.doubled) == (0, 0), account
    assert len({alert.iid for alert in stored}) == len(stored)
    return account
