"""What becomes of an incoming alert: decided here, with no database in sight."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from domain.alerts.incoming import IncomingAlert

TRIGGERED = "triggered"
RESOLVED = "resolved"


class Action(StrEnum):
    """What one item did, in the words of the delivery log."""

    OPENED = "opened"
    JOINED = "joined"
    RESOLVED = "resolved"
    UNCHANGED = "unchanged"
    STORED_AS_RESOLVED = "stored as resolved"

    def __init__(self, _word: str) -> None:
        """Remember the place in the order, which is how occurrences keep it."""
        self.rank = len(type(self).__members__)


@dataclass(frozen=True, slots=True)
class Existing:
    """A stored alert: the open one with a fingerprint, else the last one that was resolved."""

    alert_id: int
    iid: int
    title: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class Planned:
    """An alert that an earlier item of the same batch creates; `index` points into Plan.new."""

    index: int
    is_open: bool


#: An alert that an item can meet.
Known = Existing | Planned


@dataclass(frozen=True, slots=True)
class Open:
    """Create an alert."""


@dataclass(frozen=True, slots=True)
class Join:
    """Count one more event on the open alert."""

    alert: Known


@dataclass(frozen=True, slots=True)
class Resolve:
    """Close the open alert at the given time."""

    alert: Known
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class AlreadyResolved:
    """Change nothing: the alert is the answer."""

    alert: Known


@dataclass(frozen=True, slots=True)
class StoreResolved:
    """Create an alert that is over already, so that nothing is lost."""

    ended_at: datetime


Decision = Open | Join | Resolve | AlreadyResolved | StoreResolved


def decide(existing: Known | None, incoming: IncomingAlert) -> Decision:
    """Decide what an item does to the alert that has its fingerprint.

    Without a fingerprint an item meets no alert: it opens one, or is stored as resolved.
    """
    if incoming.fingerprint is None:
        existing = None
    if incoming.ended_at is None:
        return Join(existing) if existing and existing.is_open else Open()
    if existing is None:
        return StoreResolved(incoming.ended_at)
    if existing.is_open:
        return Resolve(existing, incoming.ended_at)
    return AlreadyResolved(existing)


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
    title: str
    action: Action


@dataclass(frozen=True, slots=True)
class NewAnswer:
    """An item that created an alert, or met one that its batch created; see Plan.new."""

    index: int
    action: Action


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
    #: When each stored alert ended, by its id.
    resolutions: Mapping[int, datetime]
    #: One for each item, in order.
    answers: tuple[Answer, ...]


@dataclass(slots=True)
class _Draft:
    """A plan in the making."""

    new: list[NewAlert] = field(default_factory=list)
    bumps: Counter[int] = field(default_factory=Counter)
    resolutions: dict[int, datetime] = field(default_factory=dict)

    def create(self, incoming: IncomingAlert, resolved_at: datetime | None) -> Known:
        self.new.append(NewAlert(incoming, events=1, resolved_at=resolved_at))
        return Planned(len(self.new) - 1, is_open=resolved_at is None)

    def count_event(self, alert: Known) -> Known:
        match alert:
            case Existing():
                self.bumps[alert.alert_id] += 1
            case Planned(index=index):
                drafted = self.new[index]
                self.new[index] = NewAlert(drafted.incoming, drafted.events + 1, None)
        return alert

    def close(self, alert: Known, ended_at: datetime) -> Known:
        match alert:
            case Existing():
                self.resolutions[alert.alert_id] = ended_at
                return Existing(alert.alert_id, alert.iid, alert.title, is_open=False)
            case Planned(index=index):
                drafted = self.new[index]
                self.new[index] = NewAlert(drafted.incoming, drafted.events, ended_at)
                return Planned(index, is_open=False)

    def carry_out(self, decision: Decision, incoming: IncomingAlert) -> tuple[Known, Action]:
        match decision:
            case Open():
                return self.create(incoming, None), Action.OPENED
            case Join(alert=alert):
                return self.count_event(alert), Action.JOINED
            case Resolve(alert=alert, ended_at=ended_at):
                return self.close(alert, ended_at), Action.RESOLVED
            case AlreadyResolved(alert=alert):
                return alert, Action.UNCHANGED
            case StoreResolved(ended_at=ended_at):
                return self.create(incoming, ended_at), Action.STORED_AS_RESOLVED


def _answer(alert: Known, action: Action) -> Answer:
    match alert:
        case Existing():
            return ExistingAnswer(alert.alert_id, alert.iid, alert.title, action)
        case Planned():
            return NewAnswer(alert.index, action)


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
        alert, action = draft.carry_out(decide(met, item), item)
        if item.fingerprint is not None:
            known[item.fingerprint] = alert
        answers.append(_answer(alert, action))
    return Plan(tuple(draft.new), draft.bumps, draft.resolutions, tuple(answers))
