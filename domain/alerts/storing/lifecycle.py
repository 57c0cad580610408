"""Decides how incoming alerts change stored alerts, without access to the database.

`plan_intake` takes the items of a delivery and the stored alerts with the same fingerprints, and
returns the changes to write. The modules `postgres_batch` and `sqlite_batch` write these changes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from domain.alerts.parsing.incoming_alert import IncomingAlert
from domain.alerts.parsing.times import END_BEFORE_START
from domain.alerts.storing.reported_fields import (
    ReportedFields,
    apply_later_report,
    get_reported_fields,
)

TRIGGERED = "triggered"
RESOLVED = "resolved"

#: Warning for an item with the action LATE.
ARRIVED_LATE_WARNING = (
    "The report arrived late: it began before its alert was resolved. It was counted for that "
    "alert and opened no new alert."
)


class Action(StrEnum):
    """The result of storing an item. The values appear in the delivery log."""

    OPENED = "opened"
    JOINED = "joined"
    RESOLVED = "resolved"
    UNCHANGED = "unchanged"
    STORED_AS_RESOLVED = "stored as resolved"
    #: Result for a copy of an alert that was resolved before the copy arrived. Occurrences store
    #: this action with the rank of JOINED and with `is_late` set.
    LATE = "arrived late"

    def __init__(self, word: str) -> None:
        """Set `rank`, the number in the `occurrences.action` column."""
        self.rank = 1 if word == "arrived late" else len(type(self).__members__)


@dataclass(frozen=True, slots=True)
class Arrival:
    """The time at which a body arrived, with the time bounds that identify late copies."""

    received_at: datetime
    #: Bounds of a period. A copy is late if the recovery of its alert was received in this period.
    recovered_after: datetime
    recovered_before: datetime


@dataclass(frozen=True, slots=True)
class StoredAlert:
    """A stored alert: the open alert with a fingerprint, or else the last resolved alert."""

    alert_id: int
    iid: int
    title: str
    started_at: datetime
    #: End of the alert, or None while it is open.
    ended_at: datetime | None
    #: Time of the recovery, or None if no report resolved the alert. In that case, its cause may
    #: persist.
    recovery_received_at: datetime | None = None
    #: ID of the alert's integration, which is only read on SQLite.
    integration_id: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedAlert:
    """An alert that an earlier item of the batch creates.

    `index` is the position of the alert in `IntakePlan.new`.
    """

    index: int
    started_at: datetime
    ended_at: datetime | None
    recovery_received_at: datetime | None = None


#: Alert that an item can match.
MatchedAlert = StoredAlert | PlannedAlert


@dataclass(frozen=True, slots=True)
class OpenAlertDecision:
    """A decision to create an alert."""

    action: ClassVar = Action.OPENED
    warning: ClassVar = None


@dataclass(frozen=True, slots=True)
class JoinAlertDecision:
    """A decision to add an event to the open alert and update its reported fields."""

    action: ClassVar = Action.JOINED
    warning: ClassVar = None
    alert: MatchedAlert


@dataclass(frozen=True, slots=True)
class LateCopyDecision:
    """A decision to add an event to a resolved alert, because a late copy arrived."""

    action: ClassVar = Action.LATE
    warning: ClassVar = ARRIVED_LATE_WARNING
    alert: MatchedAlert


@dataclass(frozen=True, slots=True)
class ResolveAlertDecision:
    """A decision to resolve the open alert at the given time, which is not before its start."""

    action: ClassVar = Action.RESOLVED
    alert: MatchedAlert
    ended_at: datetime
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class KeepResolvedAlertDecision:
    """A decision to change nothing, because the alert is already resolved."""

    action: ClassVar = Action.UNCHANGED
    warning: ClassVar = None
    alert: MatchedAlert


@dataclass(frozen=True, slots=True)
class StoreResolvedAlertDecision:
    """A decision to create a resolved alert, because a recovery arrived without its alert."""

    action: ClassVar = Action.STORED_AS_RESOLVED
    warning: ClassVar = None
    ended_at: datetime


ItemDecision = (
    OpenAlertDecision
    | JoinAlertDecision
    | LateCopyDecision
    | ResolveAlertDecision
    | KeepResolvedAlertDecision
    | StoreResolvedAlertDecision
)


def can_match_resolved_alert(incoming: IncomingAlert) -> bool:
    """Return whether an item can belong to a resolved alert."""
    return incoming.ended_at is not None or incoming.reported_start is not None


def decide_item_effect(
    existing: MatchedAlert | None, incoming: IncomingAlert, arrival: Arrival
) -> ItemDecision:
    """Decide how an item changes the alert with the same fingerprint.

    An item without a fingerprint matches no alert. It opens a new alert, or is stored as resolved.
    """
    if incoming.fingerprint is None:
        existing = None
    if incoming.ended_at is None:
        decision: ItemDecision = OpenAlertDecision()
        if existing is not None and existing.ended_at is None:
            decision = JoinAlertDecision(existing)
        elif existing is not None and _is_late_copy(existing, incoming, arrival):
            decision = LateCopyDecision(existing)
        return decision
    if existing is None:
        return StoreResolvedAlertDecision(incoming.ended_at)
    if existing.ended_at is not None:
        return KeepResolvedAlertDecision(existing)
    if incoming.ended_at < existing.started_at:
        return ResolveAlertDecision(existing, existing.started_at, warning=END_BEFORE_START)
    return ResolveAlertDecision(existing, incoming.ended_at)


def _is_late_copy(resolved: MatchedAlert, incoming: IncomingAlert, arrival: Arrival) -> bool:
    ended_at, recovered_at = resolved.ended_at, resolved.recovery_received_at
    # Two kinds of reports must open a new alert: reports of a new problem from senders with a
    # constant start, and reports of a problem that persists although its alert was resolved by
    # something other than a report.
    if incoming.reported_start is None or ended_at is None or recovered_at is None:
        return False
    is_recent = arrival.recovered_after < recovered_at < arrival.recovered_before
    return is_recent and incoming.reported_start < _truncate(ended_at, incoming.reported_start)


def _truncate(time: datetime, start: datetime) -> datetime:
    """Return a time with the precision of a reported start: minutes, seconds or microseconds.

    A new problem with the start 07:41 may have started after an alert that ended at 07:41:20.
    """
    if start.microsecond:
        return time
    return time.replace(microsecond=0, second=time.second if start.second else 0)


@dataclass(frozen=True, slots=True)
class NewAlert:
    """An alert to create. `resolved_at` is None if the alert is open."""

    incoming: IncomingAlert
    events: int
    resolved_at: datetime | None

    @property
    def status(self) -> str:
        """Initial status of the alert."""
        return TRIGGERED if self.resolved_at is None else RESOLVED


@dataclass(frozen=True, slots=True)
class StoredAlertOutcome:
    """The outcome of an item that matched a stored alert."""

    alert_id: int
    iid: int
    #: Title of the alert after all items of the batch have been applied.
    title: str
    action: Action
    #: Warning about a result that the sender may not expect, or None.
    warning: str | None = None
    #: ID of the alert's integration, which is only known on SQLite.
    integration_id: int | None = None


@dataclass(frozen=True, slots=True)
class NewAlertOutcome:
    """The outcome of an item that created an alert, or matched an alert of the same batch.

    `index` is the position of the alert in `IntakePlan.new`.
    """

    index: int
    action: Action
    warning: str | None = None


ItemOutcome = StoredAlertOutcome | NewAlertOutcome


@dataclass(frozen=True, slots=True)
class IntakePlan:
    """The changes that a batch makes.

    Resolutions must be written before new alerts. A batch may resolve an alert and open the next
    alert with the same fingerprint.
    """

    #: New alerts in the order in which they first appear.
    new: tuple[NewAlert, ...]
    #: Number of events to add to each stored alert, by alert ID.
    added_events: Mapping[int, int]
    #: Latest report of each stored open alert, with the index of its item, by alert ID.
    reported: Mapping[int, tuple[ReportedFields, int]]
    #: End of each stored alert to resolve, by alert ID.
    resolutions: Mapping[int, datetime]
    #: Outcomes of all items, in order.
    outcomes: tuple[ItemOutcome, ...]


@dataclass(slots=True)
class _IntakePlanBuilder:
    """Collects the changes of an intake plan while the items of a batch are processed."""

    arrival: Arrival
    new: list[NewAlert] = field(default_factory=list)
    bumps: Counter[int] = field(default_factory=Counter)
    reported: dict[int, tuple[ReportedFields, int]] = field(default_factory=dict)
    resolutions: dict[int, datetime] = field(default_factory=dict)

    def add_new_alert(self, incoming: IncomingAlert) -> MatchedAlert:
        self.new.append(NewAlert(incoming, events=1, resolved_at=incoming.ended_at))
        recovered_at = None if incoming.ended_at is None else self.arrival.received_at
        return PlannedAlert(len(self.new) - 1, incoming.started_at, incoming.ended_at, recovered_at)

    def add_event_to_alert(self, alert: MatchedAlert) -> MatchedAlert:
        match alert:
            case StoredAlert():
                self.bumps[alert.alert_id] += 1
            case PlannedAlert(index=index):
                drafted = self.new[index]
                self.new[index] = replace(drafted, events=drafted.events + 1)
        return alert

    def join_alert(self, alert: MatchedAlert, incoming: IncomingAlert) -> MatchedAlert:
        match alert:
            case StoredAlert(alert_id=alert_id):
                report = get_reported_fields(incoming)
                if alert_id in self.reported:
                    report = report.merge_over_earlier(self.reported[alert_id][0])
                self.reported[alert_id] = report, incoming.item_index
                self.bumps[alert_id] += 1
            case PlannedAlert(index=index):
                drafted = self.new[index]
                updated = apply_later_report(drafted.incoming, incoming)
                self.new[index] = replace(drafted, incoming=updated, events=drafted.events + 1)
        return alert

    def resolve_alert(self, alert: MatchedAlert, ended_at: datetime) -> MatchedAlert:
        match alert:
            case StoredAlert():
                self.resolutions[alert.alert_id] = ended_at
            case PlannedAlert(index=index):
                self.new[index] = replace(self.new[index], resolved_at=ended_at)
        recovered_at = self.arrival.received_at
        return replace(alert, ended_at=ended_at, recovery_received_at=recovered_at)

    def apply_decision(self, decision: ItemDecision, incoming: IncomingAlert) -> MatchedAlert:
        match decision:
            case OpenAlertDecision() | StoreResolvedAlertDecision():
                return self.add_new_alert(incoming)
            case JoinAlertDecision(alert=alert):
                return self.join_alert(alert, incoming)
            case LateCopyDecision(alert=alert):
                return self.add_event_to_alert(alert)
            case ResolveAlertDecision(alert=alert, ended_at=ended_at):
                return self.resolve_alert(alert, ended_at)
            case KeepResolvedAlertDecision(alert=alert):
                return alert


def plan_intake(
    incoming: Iterable[IncomingAlert], existing: Mapping[bytes, StoredAlert], arrival: Arrival
) -> IntakePlan:
    """Return the changes that a batch makes, and the outcome of each of its items.

    `existing` contains the stored alert for each fingerprint. Items are applied in order: each item
    is matched with the alert's state after the earlier items.
    """
    known: dict[bytes, MatchedAlert] = dict(existing)
    draft = _IntakePlanBuilder(arrival)
    decided: list[tuple[MatchedAlert, ItemDecision]] = []
    for item in incoming:
        matched = known.get(item.fingerprint) if item.fingerprint is not None else None
        decision = decide_item_effect(matched, item, arrival)
        alert = draft.apply_decision(decision, item)
        if item.fingerprint is not None:
            known[item.fingerprint] = alert
        decided.append((alert, decision))
    outcomes: list[ItemOutcome] = []
    for alert, decision in decided:
        action, warning = decision.action, decision.warning
        if isinstance(alert, PlannedAlert):
            outcomes.append(NewAlertOutcome(alert.index, action, warning))
        else:
            # Use the title that the alert has after all items.
            report, _ = draft.reported.get(alert.alert_id, (None, 0))
            title = (report and report.title) or alert.title
            outcomes.append(
                StoredAlertOutcome(
                    alert.alert_id, alert.iid, title, action, warning, alert.integration_id
                )
            )
    return IntakePlan(
        tuple(draft.new), draft.bumps, draft.reported, draft.resolutions, tuple(outcomes)
    )
