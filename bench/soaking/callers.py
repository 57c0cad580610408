"""How visitors of a soak ask: by turns, paced, and with a note of each answer."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic
from typing import Any

import requests

from bench.soaking.ledger import Ledger

_PATIENCE_SECONDS = 60
_NO_ANSWER = "no answer"


class WrongAnswerError(Exception):
    """An answer is not what it should be; it is noted already."""


@dataclass(frozen=True, kw_only=True)
class Visitor:
    """Somebody who does the same thing again and again."""

    name: str
    #: Seconds from the beginning of a turn to the next.
    every: float
    turn: Callable[[], None]
    #: What is done after the last one.
    leave: Callable[[], None] = lambda: None


class Caller:
    """Sends the requests of one visitor."""

    def __init__(self, base: str, ledger: Ledger, session: requests.Session | None = None) -> None:
        """Take where the service is, and who has its cookies."""
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
        """Return an answer with one of the good statuses; else raise WrongAnswerError."""
        began = monotonic()
        try:
            answer = self.session.request(
                method,
                path if "://" in path else self._base + path,
                allow_redirects=False,
                timeout=_PATIENCE_SECONDS,
                **options,
            )
        except requests.RequestException as error:
            took = monotonic() - began
            said = f"{_NO_ANSWER}: {type(error).__name__}"
            self.ledger.note(what, said, took=took, is_right=False)
            raise WrongAnswerError(what) from error
        took, status = monotonic() - began, answer.status_code
        if status not in good:
            said = f"{status} {path} {answer.text}"
            self.ledger.note(what, said, took=took, is_right=False)
            raise WrongAnswerError(what)
        self.ledger.note(what, str(status), took=took)
        return answer


@contextmanager
def at_work(visitors: Sequence[Visitor], ledger: Ledger) -> Iterator[Event]:
    """Let all of them take turns for as long as the block runs; the event ends them sooner."""
    end = Event()
    threads = [Thread(target=_go_on, args=(each, ledger, end), name=each.name) for each in visitors]
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


def _go_on(visitor: Visitor, ledger: Ledger, end: Event) -> None:
    due = monotonic()
    while not end.wait(max(0.0, due - monotonic())):
        # Who was late does not hurry: the pace is that of the slowest turn.
        due = max(due + visitor.every, monotonic())
        began = monotonic()
        try:
            with suppress(WrongAnswerError):
                visitor.turn()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            said = f"{type(error).__name__}: {error}"
            ledger.note(visitor.name, said, took=monotonic() - began, is_right=False)
