"""Requests of the visitors of a soak, with a fixed pace and a record of each response."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic
from typing import Any

import requests

from bench.soak.ledger import ResponseLedger

_RESPONSE_TIMEOUT_SECONDS = 60
_NO_RESPONSE = "no response"


class WrongResponseError(Exception):
    """A response is wrong. It has already been recorded."""


@dataclass(frozen=True, kw_only=True)
class SoakVisitor:
    """A visitor that repeats the same actions."""

    name: str
    #: Seconds from the start of a turn to the next.
    every: float
    turn: Callable[[], None]
    #: Function to call after the last turn.
    leave: Callable[[], None] = lambda: None


class RecordingClient:
    """Sends the requests of a visitor."""

    def __init__(
        self, base: str, ledger: ResponseLedger, session: requests.Session | None = None
    ) -> None:
        """Store the base URL of the service, and the session with the visitor's cookies."""
        self._base = base
        self.ledger = ledger
        self.session = session or requests.Session()
        self.session.trust_env = False

    def ask(
        self,
        what: str,
        method: str,
        path: str,
        *,
        good: Collection[int] = (200,),
        **options: Any,
    ) -> requests.Response:
        """Return a response with one of the given statuses.

        Raise WrongResponseError for other responses and failed requests.
        """
        began = monotonic()
        try:
            answer = self.session.request(
                method,
                path if "://" in path else self._base + path,
                allow_redirects=False,
                timeout=_RESPONSE_TIMEOUT_SECONDS,
                **options,
            )
        except requests.RequestException as error:
            took = monotonic() - began
            said = f"{_NO_RESPONSE} ({type(error).__name__})"
            self.ledger.note(what, said, took=took, is_right=False)
            raise WrongResponseError(what) from error
        took, status = monotonic() - began, answer.status_code
        if status not in good:
            said = f"{status} {path} {answer.text}"
            self.ledger.note(what, said, took=took, is_right=False)
            raise WrongResponseError(what)
        self.ledger.note(what, str(status), took=took)
        return answer


@contextmanager
def run_visitors(visitors: Sequence[SoakVisitor], ledger: ResponseLedger) -> Iterator[Event]:
    """Run the turns of all visitors for the duration of the block; the event ends them sooner."""
    end = Event()
    threads = [
        Thread(target=_repeat_turns, args=(each, ledger, end), name=each.name) for each in visitors
    ]
    for thread in threads:
        thread.start()
    try:
        yield end
    finally:
        end.set()
        for thread in threads:
            thread.join()
        for each in visitors:
            each.leave()


def _repeat_turns(visitor: SoakVisitor, ledger: ResponseLedger, end: Event) -> None:
    due = monotonic()
    while not end.wait(max(0.0, due - monotonic())):
        # A delayed visitor does not catch up: the slowest turn determines the pace.
        due = max(due + visitor.every, monotonic())
        began = monotonic()
        try:
            with suppress(WrongResponseError):
                visitor.turn()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            said = f"{type(error).__name__}: {error}"
            ledger.note(visitor.name, said, took=monotonic() - began, is_right=False)
