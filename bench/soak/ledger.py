"""Records of responses to visitors, and of alerts and pages that are expected."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic

#: Seconds after the kill of a web process in which its connections are lost and a new one starts.
KILL_SECONDS = 10.0
_MAX_TEXT_LENGTH = 200


@dataclass(frozen=True, kw_only=True)
class ProcessKill:
    """A killed process."""

    #: Seconds since the start.
    at: float
    name: str
    pid: int


@dataclass(frozen=True, kw_only=True)
class WrongResponse:
    """A wrong response."""

    at: float
    what: str
    said: str
    #: True if a web process was killed during the request or shortly before it.
    after_kill: bool


@dataclass
class ResponseLedger:
    """The records of all visitors. Times are in seconds since its creation."""

    began: float = field(default_factory=monotonic)
    answers: dict[str, Counter[str]] = field(default_factory=dict)
    wrong: list[WrongResponse] = field(default_factory=list)
    kills: list[ProcessKill] = field(default_factory=list)
    longest: dict[str, float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return monotonic() - self.began

    def note(self, what: str, said: str, *, took: float = 0.0, is_right: bool = True) -> None:
        """Record a response and the seconds that it took."""
        end = self.now
        with self._lock:
            self.answers.setdefault(what, Counter())[
                said[:_MAX_TEXT_LENGTH].partition("\n")[0]
            ] += 1
            after_kill = self._was_killed(end - took, end)
            if not after_kill:
                self.longest[what] = max(self.longest.get(what, 0.0), took)
            if not is_right:
                words = said[:_MAX_TEXT_LENGTH]
                self.wrong.append(
                    WrongResponse(at=end, what=what, said=words, after_kill=after_kill)
                )

    def record_kill(self, name: str, pid: int) -> None:
        """Record that a process is about to be killed."""
        with self._lock:
            self.kills.append(ProcessKill(at=self.now, name=name, pid=pid))

    def _was_killed(self, begin: float, end: float) -> bool:
        return any(
            kill.name == "web" and begin < kill.at + KILL_SECONDS and end > kill.at
            for kill in self.kills
        )


@dataclass
class AcceptedAlerts:
    """Accepted alerts, which are kept until it is checked that each is stored exactly once."""

    accepted: int = 0
    seen: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    _waiting: dict[str, float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def accept(self, titles: Iterable[str]) -> None:
        """Record alerts that were accepted for the first time."""
        with self._lock:
            for each in titles:
                self.accepted += 1
                self._waiting[each] = monotonic()

    def waiting(self, *, older_than: float) -> list[str]:
        """Return alerts that were accepted `older_than` seconds ago and have not been checked."""
        before = monotonic() - older_than
        with self._lock:
            return [title for title, at in self._waiting.items() if at < before]

    def check(self, titles: Iterable[str], stored: Mapping[str, int]) -> None:
        """Compare alerts with the number of times that each is stored."""
        with self._lock:
            for each in titles:
                del self._waiting[each]
                self.seen += 1
                count = stored.get(each, 0)
                if count == 0:
                    self.lost.append(each)
                elif count > 1:
                    self.doubled.append(each)


@dataclass
class ExpectedPages:
    """The expected and the sent pages. Keys are users and titles."""

    due: set[tuple[str, str]] = field(default_factory=set)
    #: Pages that may or may not be sent, because a request about the alert failed or was late.
    possible: set[tuple[str, str]] = field(default_factory=set)
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    messages: int = 0
    _lock: Lock = field(default_factory=Lock)

    def expect(self, person: str, title: str) -> None:
        """Record that a user has to be paged."""
        with self._lock:
            self.due.add((person, title))

    def expect_possibly(self, person: str, title: str) -> None:
        """Record that it is uncertain whether a user is paged."""
        with self._lock:
            self.possible.add((person, title))

    def has(self, person: str, title: str) -> bool:
        """Return whether a user was paged."""
        return self.sent[person, title] > 0

    def take(self, person: str, titles: Iterable[str]) -> None:
        """Record a message and the firing alerts that it lists."""
        with self._lock:
            self.messages += 1
            self.sent.update((person, each) for each in titles)

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Expected pages that were not sent."""
        return sorted(self.due - set(self.sent))

    @property
    def again(self) -> list[tuple[str, str]]:
        """Pages that were sent more than once."""
        return sorted(key for key, count in self.sent.items() if count > 1)

    @property
    def unexpected(self) -> list[tuple[str, str]]:
        """Pages that were sent but not expected."""
        return sorted(set(self.sent) - self.due - self.possible)
