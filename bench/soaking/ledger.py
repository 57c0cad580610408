"""What visitors were answered, and what should have been stored and sent."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic

#: After a web process was killed, its connections are gone, and a new one starts.
KILL_SECONDS = 10.0
_LONGEST_WORDS = 200


@dataclass(frozen=True, kw_only=True)
class Kill:
    """A process that was killed."""

    #: Seconds since the beginning.
    at: float
    name: str
    pid: int


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """An answer that is not what it should be."""

    at: float
    what: str
    said: str
    #: Whether a web process was killed while it was waited for, or just before.
    after_kill: bool


@dataclass
class Ledger:
    """Notes of all visitors; times are seconds since it was made."""

    began: float = field(default_factory=monotonic)
    answers: dict[str, Counter[str]] = field(default_factory=dict)
    wrong: list[Wrong] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    longest: dict[str, float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return monotonic() - self.began

    def note(self, what: str, said: str, *, took: float = 0.0, is_right: bool = True) -> None:
        """Note an answer that took so many seconds to come."""
        end = self.now
        with self._lock:
            self.answers.setdefault(what, Counter())[said[:_LONGEST_WORDS].partition("\n")[0]] += 1
            after_kill = self._was_killed(end - took, end)
            if not after_kill:
                self.longest[what] = max(self.longest.get(what, 0.0), took)
            if not is_right:
                words = said[:_LONGEST_WORDS]
                self.wrong.append(Wrong(at=end, what=what, said=words, after_kill=after_kill))

    def note_kill(self, name: str, pid: int) -> None:
        """Note that a process is about to be killed."""
        with self._lock:
            self.kills.append(Kill(at=self.now, name=name, pid=pid))

    def _was_killed(self, begin: float, end: float) -> bool:
        return any(
            kill.name == "web" and begin < kill.at + KILL_SECONDS and end > kill.at
            for kill in self.kills
        )


@dataclass
class Titles:
    """Alerts that were accepted, until somebody has looked whether each is stored once."""

    accepted: int = 0
    seen: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    _waiting: dict[str, float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def accept(self, titles: Iterable[str]) -> None:
        """Note what was answered by a success, for the first time."""
        with self._lock:
            for each in titles:
                self.accepted += 1
                self._waiting[each] = monotonic()

    def waiting(self, *, older_than: float) -> list[str]:
        """Return those that were accepted so many seconds ago and not yet looked for."""
        before = monotonic() - older_than
        with self._lock:
            return [title for title, at in self._waiting.items() if at < before]

    def check(self, titles: Iterable[str], stored: Mapping[str, int]) -> None:
        """Compare with how often each is stored."""
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
class PagesDue:
    """Who is to be paged for what, and who was; keys are people and titles."""

    due: set[tuple[str, str]] = field(default_factory=set)
    #: What may be sent or not: a request about the alert was not answered, or came late.
    possible: set[tuple[str, str]] = field(default_factory=set)
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    messages: int = 0
    _lock: Lock = field(default_factory=Lock)

    def expect(self, person: str, title: str) -> None:
        """Note that somebody has to be paged."""
        with self._lock:
            self.due.add((person, title))

    def doubt(self, person: str, title: str) -> None:
        """Note that nobody knows whether somebody is to be paged."""
        with self._lock:
            self.possible.add((person, title))

    def has(self, person: str, title: str) -> bool:
        """Return whether somebody was paged."""
        return self.sent[person, title] > 0

    def take(self, person: str, titles: Iterable[str]) -> None:
        """Note a message, and the alerts that it says fire."""
        with self._lock:
            self.messages += 1
            self.sent.update((person, each) for each in titles)

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Pages that were due and never came."""
        return sorted(self.due - set(self.sent))

    @property
    def again(self) -> list[tuple[str, str]]:
        """Pages that came more than once."""
        return sorted(key for key, count in self.sent.items() if count > 1)

    @property
    def not_due(self) -> list[tuple[str, str]]:
        """Pages that came and were not due."""
        return sorted(set(self.sent) - self.due - self.possible)
