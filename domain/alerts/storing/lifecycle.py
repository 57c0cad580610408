"""What becomes of an incoming alert: decided here, with no database in sight."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from domain.alerts.reading.incoming import IncomingAlert
from domain.alerts.reading.times import END_BEFORE_START
from domain.alerts.storing.words import Words, retold, words_of

TRIGGERED = "triggered"
RESOLVED = "resolved"

ARRIVED_LATE = (
    "It arrived late: it began before its alert ended, and that one is over. It was counted there "
    "and opened nothing."
)


class Action(StrEnum):
    """What one item did, in the words of the delivery log."""

    OPENED = "opened"
    JOINED = "joined"
    RESOLVED = "resolved"
    UNCHANGED = "unchanged"
    STORED_AS_RESOLVED = "stored as resolved"
    #: A copy of what is over already; occurrences keep it as one that joined, and with a mark.
    LATE = "arrived late"

    def __init__(self, word: str) -> None:
        """Remember the place in the order, which is how occurrences keep it."""
        self.rank = 1 if word == "arrived late" else len(type(self).__members__)


@dataclass(frozen=True, slots=True)
class Existing:
    """A stored alert: the open one with a fingerprint, else the last one that was resolved."""

    alert_id: int
    iid: int
    title: str
    started_at: datetime
    #: None while it is open.
    ended_at: datetime | None
    #: Somebody closed it, and whatever it is about may go on.
    is_closed_by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """An alert that an earlier item of the same batch creates; `index` points into Plan.new."""

    index: int
    started_at: datetime
    ended_at: datetime | None
    is_closed_by_hand: bool = False


#: An alert that an item can meet.
Known = Existing | Planned


@dataclass(frozen=True, slots=True)
class Open:
    """Create an alert."""

    action: ClassVar = Action.OPENED


@dataclass(frozen=True, slots=True)
class Join:
    """Count one more event on the open alert, and show its words."""

    action: ClassVar = Action.JOINED
    alert: Known


@dataclass(frozen=True, slots=True)
class CountLate:
    """Count a copy that arrived late on the alert that is over."""

    action: ClassVar = Action.LATE
    alert: Known


@dataclass(frozen=True, slots=True)
class Resolve:
    """Close the open alert at the given time, which does not lie before its start."""

    action: ClassVar = Action.RESOLVED
    alert: Known
    ended_at: datetime
    remark: str | None = None


@dataclass(frozen=True, slots=True)
class AlreadyResolved:
    """Change nothing: the alert is the answer."""

    action: ClassVar = Action.UNCHANGED
    alert: Known


@dataclass(frozen=True, slots=True)
class StoreResolved:
    """Create an alert that is over already, so that nothing is lost."""

    action: ClassVar = Action.STORED_AS_RESOLVED
    ended_at: datetime


Decision = Open | Join | CountLate | Resolve | AlreadyResolved | StoreResolved


def looks_back(incoming: IncomingAlert) -> bool:
    """Tell whether an item may belong to an alert that is over."""
    return incoming.ended_at is not None or incoming.given_start is not None


def decide(existing: Known | None, incoming: IncomingAlert) -> Decision:
    """Decide what an item does to the alert that has its fingerprint.

    Without a fingerprint an item meets no alert: it opens one, or is stored as resolved.
    """
    if incoming.fingerprint is None:
        existing = None
    if incoming.ended_at is None:
        return _decide_firing(existing, incoming)
    if existing is None:
        return StoreResolved(incoming.ended_at)
    if existing.ended_at is not None:
        return AlreadyResolved(existing)
    if incoming.ended_at < existing.started_at:
        return Resolve(existing, existing.started_at, remark=END_BEFORE_START)
    return Resolve(existing, incoming.ended_at)


def _decide_firing(existing: Known | None, incoming: IncomingAlert) -> Decision:
    if existing is None:
        return Open()
    if existing.ended_at is None:
        return Join(existing)
    start = incoming.given_start
    # Who closes an alert by hand does not end what it is about: senders go on telling of that, and
    # each time with the same start.
    if start is None or existing.is_closed_by_hand:
        return Open()
    is_copy = start < existing.ended_at or start == existing.started_at
    return CountLate(existing) if is_copy else Open()


@dataclass(frozen=True, slots=True)
class NewAlert:
    """An alert to be created; `resolved_at` is None while it is open."""

    incoming: IncomingAlert
    events: int
    resolved_at: datetime | None

    @property
    def status(self) -> str:
        """The status that it begins with."""
        return TRIGGERED if self.resolved_at is None else RESOLVED


@dataclass(frozen=True, slots=True)
class ExistingAnswer:
    """An item that met a stored alert."""

    alert_id: int
    iid: int
    #: The present one, after all items.
    title: str
    action: Action
    #: What the sender may not expect, in a sentence.
    remark: str | None = None


@dataclass(frozen=True, slots=True)
class NewAnswer:
    """An item that created an alert, or met one that its batch created; see Plan.new."""

    index: int
    action: Action
    remark: str | None = None


Answer = ExistingAnswer | NewAnswer


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a batch changes.

    Store resolutions before new alerts: a batch may close an alert and open its successor.
    """

    #: In order of first appearance.
    new: tuple[NewAlert, ...]
    #: How many more events each stored alert has had, by its id.
    bumps: Mapping[int, int]
    #: What was said last of each stored alert that was open, and by which item, by its id.
    words: Mapping[int, tuple[Words, int]]
    #: When each stored alert ended, by its id.
    resolutions: Mapping[int, datetime]
    #: One for each item, in order.
    answers: tuple[Answer, ...]


@dataclass(slots=True)
class _Draft:
    """A plan in the making."""

    new: list[NewAlert] = field(default_factory=list)
    bumps: Counter[int] = field(default_factory=Counter)
    words: dict[int, tuple[Words, int]] = field(default_factory=dict)
    resolutions: dict[int, datetime] = field(default_factory=dict)

    def create(self, incoming: IncomingAlert) -> Known:
        self.new.append(NewAlert(incoming, events=1, resolved_at=incoming.ended_at))
        return Planned(len(self.new) - 1, incoming.started_at, incoming.ended_at)

    def count_event(self, alert: Known) -> Known:
        match alert:
            case Existing():
                self.bumps[alert.alert_id] += 1
            case Planned(index=index):
                drafted = self.new[index]
                self.new[index] = replace(drafted, events=drafted.events + 1)
        return alert

    def join(self, alert: Known, incoming: IncomingAlert) -> Known:
        match alert:
            case Existing(alert_id=alert_id):
                said = words_of(incoming)
                if alert_id in self.words:
                    said = said.over(self.words[alert_id][0])
                self.words[alert_id] = said, incoming.item_index
            case Planned(index=index):
                drafted = self.new[index]
                self.new[index] = replace(drafted, incoming=retold(drafted.incoming, incoming))
        return self.count_event(alert)

    def close(self, alert: Known, ended_at: datetime) -> Known:
        match alert:
            case Existing():
                self.resolutions[alert.alert_id] = ended_at
            case Planned(index=index):
                self.new[index] = replace(self.new[index], resolved_at=ended_at)
        return replace(alert, ended_at=ended_at)

    def carry_out(self, decision: Decision, incoming: IncomingAlert) -> Known:
        match decision:
            case Open() | StoreResolved():
                return self.create(incoming)
            case Join(alert=alert):
                return self.join(alert, incoming)
            case CountLate(alert=alert):
                return self.count_event(alert)
            case Resolve(alert=alert, ended_at=ended_at):
                return self.close(alert, ended_at)
            case AlreadyResolved(alert=alert):
                return alert


def _answer(alert: Known, decision: Decision) -> Answer:
    action, remark = decision.action, _remark_on(decision)
    match alert:
        case Existing():
            return ExistingAnswer(alert.alert_id, alert.iid, alert.title, action, remark)
        case Planned():
            return NewAnswer(alert.index, action, remark)


def _remark_on(decision: Decision) -> str | None:
    match decision:
        case CountLate():
            return ARRIVED_LATE
        case Resolve(remark=remark):
            return remark
    return None


def plan(incoming: Iterable[IncomingAlert], existing: Mapping[bytes, Existing]) -> Plan:
    """Fold a batch, item by item, into what it changes.

    `existing` has the stored alert of each fingerprint. Items with one fingerprint meet the alert
    that an earlier item of the batch left behind.
    """
    known: dict[bytes, Known] = dict(existing)
    draft = _Draft()
    answers: list[Answer] = []
    for item in incoming:
        met = known.get(item.fingerprint) if item.fingerprint is not None else None
        decision = decide(met, item)
        alert = draft.carry_out(decision, item)
        if item.fingerprint is not None:
            known[item.fingerprint] = alert
        answers.append(_answer(alert, decision))
    titled = tuple(_titled(answer, draft.words) for answer in answers)
    return Plan(tuple(draft.new), draft.bumps, draft.words, draft.resolutions, titled)


def _titled(answer: Answer, words: Mapping[int, tuple[Words, int]]) -> Answer:
    """Return an answer with the title that its alert has after all items."""
    if isinstance(answer, NewAnswer) or answer.alert_id not in words:
        return answer
    return replace(answer, title=words[answer.alert_id][0].title or answer.title)
