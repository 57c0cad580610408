from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.parsing.incoming_alert import AlertState, IncomingAlert, ParsedBody, Severity
from domain.alerts.parsing.times import END_BEFORE_START
from domain.alerts.storing import lifecycle
from domain.alerts.storing.intake_result import build_intake_result, build_outcome_values
from domain.alerts.storing.lifecycle import (
    ARRIVED_LATE_WARNING,
    Action,
    Arrival,
    IntakePlan,
    JoinAlertDecision,
    KeepResolvedAlertDecision,
    LateCopyDecision,
    NewAlert,
    NewAlertOutcome,
    OpenAlertDecision,
    ResolveAlertDecision,
    StoredAlert,
    StoredAlertOutcome,
    StoreResolvedAlertDecision,
)
from tests.support.wire.garbage import bounded

NOON = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
EVENING = NOON + timedelta(hours=6)
DISK, LOAD = b"d" * 32, b"l" * 32
OPEN = StoredAlert(alert_id=70, iid=7, title="Disk full", started_at=NOON, ended_at=None)
RESOLVED = replace(OPEN, ended_at=EVENING, recovery_received_at=EVENING)
_RESOLVED_LATER = replace(RESOLVED, ended_at=EVENING + timedelta(seconds=20.5))
#: Time after a recovery in which copies count as late.
WINDOW = timedelta(minutes=5)
#: Fields that the sender left out if it gave no start.
NO_START = frozenset({"started_at"})


def arriving(at: datetime, window: timedelta = WINDOW) -> Arrival:
    return Arrival(at, recovered_after=at - window, recovered_before=at + window)


SOON = arriving(EVENING + timedelta(minutes=1))


def decide(existing: StoredAlert | None, incoming: IncomingAlert, at: Arrival = SOON) -> object:
    return lifecycle.decide_item_effect(existing, incoming, at)


def plan(incoming: Sequence[IncomingAlert], existing: dict[bytes, StoredAlert]) -> IntakePlan:
    return lifecycle.plan_intake(incoming, existing, SOON)


def firing(fingerprint: bytes | None = DISK, title: str = "Disk full") -> IncomingAlert:
    return IncomingAlert(
        title=title,
        description=None,
        severity=Severity.HIGH,
        state=AlertState.FIRING,
        started_at=NOON,
        ended_at=None,
        service=None,
        monitoring_tool=None,
        hosts=(),
        environment=None,
        fingerprint=fingerprint,
        fingerprint_source="the fingerprint field",
        severity_reason="reported as “high”",
        runbook=None,
        query=None,
        markdown=None,
        y_label=None,
        generator_url=None,
        parse_warnings=(),
        item_index=0,
        left_out=NO_START,
    )


def recovery(fingerprint: bytes | None = DISK, ended_at: datetime = EVENING) -> IncomingAlert:
    return replace(firing(fingerprint), state=AlertState.RECOVERY, ended_at=ended_at)


@pytest.mark.spec("I16")
def test_a_first_report_opens_an_alert() -> None:
    assert decide(None, firing()) == OpenAlertDecision()


@pytest.mark.spec("I16")
def test_a_repeated_report_joins_the_open_alert() -> None:
    assert decide(OPEN, firing()) == JoinAlertDecision(OPEN)


@pytest.mark.spec("I16")
def test_a_report_after_the_resolution_opens_another_alert() -> None:
    assert decide(RESOLVED, firing()) == OpenAlertDecision()


@pytest.mark.spec("I17")
def test_a_recovery_resolves_the_open_alert() -> None:
    assert decide(OPEN, recovery()) == ResolveAlertDecision(OPEN, EVENING)


@pytest.mark.spec("I17")
def test_a_second_recovery_changes_nothing() -> None:
    assert decide(RESOLVED, recovery()) == KeepResolvedAlertDecision(RESOLVED)


@pytest.mark.spec("I17")
def test_a_recovery_without_an_alert_is_stored_as_resolved() -> None:
    assert decide(None, recovery()) == StoreResolvedAlertDecision(EVENING)


@pytest.mark.spec("I8")
@pytest.mark.parametrize("existing", [None, OPEN, RESOLVED])
def test_without_a_fingerprint_no_alert_matches(existing: StoredAlert | None) -> None:
    assert decide(existing, firing(None)) == OpenAlertDecision()
    assert decide(existing, recovery(None)) == StoreResolvedAlertDecision(EVENING)


def actions(planned: IntakePlan) -> list[str]:
    return [outcome.action for outcome in planned.outcomes]


def test_an_empty_batch_changes_nothing() -> None:
    assert plan([], {}) == IntakePlan(
        new=(), added_events={}, reported={}, resolutions={}, outcomes=()
    )


@pytest.mark.spec("I16")
def test_two_equal_reports_in_a_batch_are_one_alert_with_two_events() -> None:
    first = firing(title="First")
    planned = plan([first, firing(LOAD), firing(title="Second")], {})
    assert planned.new == (
        NewAlert(firing(title="Second"), 2, None),
        NewAlert(firing(LOAD), 1, None),
    )
    assert planned.outcomes == (
        NewAlertOutcome(0, Action.OPENED),
        NewAlertOutcome(1, Action.OPENED),
        NewAlertOutcome(0, Action.JOINED),
    )


@pytest.mark.spec("I16", "I17")
def test_an_alert_that_opens_and_ends_in_a_batch_is_resolved() -> None:
    planned = plan([firing(), recovery(), recovery(ended_at=NOON)], {})
    assert planned.new == (NewAlert(firing(), 1, EVENING),)
    assert actions(planned) == ["opened", "resolved", "unchanged"]


@pytest.mark.spec("I16", "I17")
def test_an_alert_that_ends_and_begins_again_in_a_batch_is_new() -> None:
    planned = plan([firing(), recovery(), firing(), firing()], {DISK: OPEN})
    assert planned.added_events == {70: 1}
    assert planned.resolutions == {70: EVENING}
    assert planned.new == (NewAlert(firing(), 2, None),)
    assert planned.outcomes == (
        StoredAlertOutcome(70, 7, "Disk full", Action.JOINED),
        StoredAlertOutcome(70, 7, "Disk full", Action.RESOLVED),
        NewAlertOutcome(0, Action.OPENED),
        NewAlertOutcome(0, Action.JOINED),
    )


@pytest.mark.spec("I16")
def test_reports_of_an_open_alert_are_counted_together() -> None:
    planned = plan([firing(), firing(), firing()], {DISK: OPEN})
    assert (planned.new, planned.added_events, planned.resolutions) == ((), {70: 3}, {})


@pytest.mark.spec("I17")
def test_a_late_recovery_returns_the_resolved_alert() -> None:
    planned = plan([recovery()], {DISK: RESOLVED})
    assert (planned.new, planned.added_events, planned.resolutions) == ((), {}, {})
    assert planned.outcomes == (StoredAlertOutcome(70, 7, "Disk full", Action.UNCHANGED),)


@pytest.mark.spec("I17")
def test_repeated_recoveries_without_an_alert_are_one_resolved_alert() -> None:
    planned = plan([recovery(), recovery(ended_at=NOON), firing()], {})
    assert planned.new == (NewAlert(recovery(), 1, EVENING), NewAlert(firing(), 1, None))
    assert actions(planned) == ["stored as resolved", "unchanged", "opened"]


def test_items_without_fingerprint_are_separate_alerts() -> None:
    planned = plan([firing(None), firing(None), recovery(None)], {})
    assert [new.resolved_at for new in planned.new] == [None, None, EVENING]


@pytest.mark.spec("I1")
def test_each_alert_is_returned_once_in_the_order_of_the_items() -> None:
    batch = [firing(LOAD), firing(), recovery(), firing(), recovery(), firing(LOAD)]
    result = build_intake_result(plan(batch, {DISK: OPEN}), 3, [11, 12])
    first = [(item.iid, item.action) for item in result.items]
    assert first == [(11, Action.OPENED), (7, Action.JOINED), (12, Action.OPENED)]
    assert [item.iid for item in result.by_item] == [11, 7, 7, 12, 12, 11]


def test_the_log_counts_items_by_their_effect() -> None:
    batch = [firing(LOAD), firing(), recovery(), firing(), recovery(), recovery(None)]
    parsed = ParsedBody(
        alerts=tuple(batch), refused=(), truncated_alerts=4, parse_warnings=("Late.",)
    )
    values = build_outcome_values(plan(batch, {DISK: OPEN}), parsed)
    counts = {name: values[name] for name in ("opened", "joined", "resolved", "truncated_alerts")}
    assert counts == {"opened": 3, "joined": 1, "resolved": 2, "truncated_alerts": 4}
    assert values["remarks"] == ["Late."]


def copy(start: datetime, title: str = "Disk full") -> IncomingAlert:
    """Return a firing item with a start time."""
    return replace(firing(title=title), started_at=start, left_out=frozenset())


@pytest.mark.spec("I16")
def test_a_late_copy_is_counted_and_opens_no_alert() -> None:
    planned = plan([copy(NOON + timedelta(hours=1), "Old words")], {DISK: RESOLVED})
    assert (planned.new, planned.added_events, planned.reported) == ((), {70: 1}, {})
    assert planned.outcomes == (
        StoredAlertOutcome(70, 7, "Disk full", Action.LATE, ARRIVED_LATE_WARNING),
    )


@pytest.mark.spec("I16")
@pytest.mark.parametrize(
    ("met", "start", "decision"),
    [
        (RESOLVED, EVENING - timedelta(microseconds=1), LateCopyDecision(RESOLVED)),
        (RESOLVED, EVENING, OpenAlertDecision()),
        # No copy of an alert without a duration began before its end.
        (replace(RESOLVED, ended_at=NOON), NOON, OpenAlertDecision()),
        # The alert was resolved here, without a recovery from the sender.
        (replace(RESOLVED, recovery_received_at=None), NOON, OpenAlertDecision()),
        # The sender reports minutes or seconds.
        (_RESOLVED_LATER, EVENING, OpenAlertDecision()),
        (_RESOLVED_LATER, EVENING + timedelta(seconds=20), OpenAlertDecision()),
        (_RESOLVED_LATER, EVENING + timedelta(seconds=19), LateCopyDecision(_RESOLVED_LATER)),
        (_RESOLVED_LATER, EVENING - timedelta(minutes=1), LateCopyDecision(_RESOLVED_LATER)),
    ],
)
def test_an_alert_that_began_after_the_end_is_new(
    met: StoredAlert, start: datetime, decision: object
) -> None:
    assert decide(met, copy(start)) == decision


@pytest.mark.spec("I16")
@pytest.mark.parametrize(
    ("minutes", "decision"),
    [
        (4.9, LateCopyDecision(RESOLVED)),
        (5, OpenAlertDecision()),
        (60, OpenAlertDecision()),
        (-4.9, LateCopyDecision(RESOLVED)),
    ],
)
def test_copies_count_as_late_for_five_minutes_after_the_recovery(
    minutes: float, decision: object
) -> None:
    arrival = arriving(EVENING + timedelta(minutes=minutes))
    assert decide(RESOLVED, copy(NOON), arrival) == decision


@pytest.mark.spec("I16")
def test_a_recovery_from_the_future_does_not_cause_late_copies() -> None:
    assert (
        decide(RESOLVED, copy(NOON), arriving(EVENING - timedelta(hours=1))) == OpenAlertDecision()
    )


@pytest.mark.spec("I16")
def test_without_a_window_no_copy_is_late() -> None:
    at = arriving(EVENING, timedelta(0))
    assert decide(RESOLVED, copy(NOON), at) == OpenAlertDecision()
    planned = lifecycle.plan_intake([recovery(), copy(NOON)], {DISK: OPEN}, at)
    assert actions(planned) == ["resolved", "opened"]


def test_copies_after_a_recovery_in_the_same_batch_are_late() -> None:
    ended = replace(recovery(), ended_at=EVENING)
    planned = plan([ended, copy(NOON), copy(EVENING), copy(NOON)], {DISK: OPEN})
    assert actions(planned) == ["resolved", "arrived late", "opened", "joined"]


@pytest.mark.spec("I17")
def test_an_end_before_the_start_becomes_the_start() -> None:
    planned = plan([recovery(ended_at=NOON - timedelta(seconds=187))], {DISK: OPEN})
    assert planned.resolutions == {70: NOON}
    assert [outcome.warning for outcome in planned.outcomes] == [END_BEFORE_START]


def test_the_last_values_of_a_batch_win_and_missing_fields_are_kept() -> None:
    first = replace(firing(title="CPU 80%"), severity=Severity.LOW, service="web", hosts=("a",))
    last = replace(firing(title="New: Alert"), left_out=NO_START | {"title"}, description="Dead")
    planned = plan([first, last], {DISK: OPEN})
    words, _ = planned.reported[70]
    assert (words.title, words.severity, words.description) == ("CPU 80%", 1, "Dead")
    assert (words.service, words.hosts) == ("web", "a")
    assert {
        outcome.title for outcome in planned.outcomes if isinstance(outcome, StoredAlertOutcome)
    } == {"CPU 80%"}
    (new,) = plan([first, last], {}).new
    assert (new.incoming.title, new.incoming.severity) == ("CPU 80%", Severity.HIGH)
    assert (new.incoming.description, new.incoming.service) == ("Dead", "web")


class Shelf:
    """A reference store that applies one item at a time by the rules of the specification."""

    def __init__(self, existing: dict[bytes, StoredAlert]) -> None:
        self.alerts: list[list[object]] = []
        self.latest: dict[bytes, list[object]] = {}
        for fingerprint, alert in existing.items():
            self.latest[fingerprint] = [0, alert.ended_at and "before"]
            self.alerts.append(self.latest[fingerprint])

    def take(self, item: IncomingAlert) -> None:
        latest = self.latest.get(item.fingerprint) if item.fingerprint else None
        is_open = latest is not None and latest[1] is None
        if latest is None or (item.ended_at is None and not is_open):
            latest = [1, item.ended_at]
            self.alerts.append(latest)
            if item.fingerprint:
                self.latest[item.fingerprint] = latest
        elif item.ended_at is None:
            latest[0] = int(str(latest[0])) + 1
        elif is_open:
            latest[1] = item.ended_at


ITEMS = st.builds(
    lambda fingerprint, ended: (
        firing(fingerprint) if ended is None else recovery(fingerprint, NOON + timedelta(ended))
    ),
    st.sampled_from([None, DISK, LOAD]),
    st.none() | st.integers(1, 5),
)
EXISTING = st.dictionaries(st.just(DISK), st.sampled_from([OPEN, RESOLVED]))


@pytest.mark.spec("I16", "I17")
@bounded(100)
@given(st.lists(ITEMS, max_size=12), EXISTING)
def test_a_batch_has_the_same_result_as_its_items_one_by_one(
    batch: list[IncomingAlert], existing: dict[bytes, StoredAlert]
) -> None:
    shelf = Shelf(existing)
    for item in batch:
        shelf.take(item)
    planned = plan(batch, existing)
    stored = [
        [planned.added_events.get(70, 0), planned.resolutions.get(70, alert.ended_at and "before")]
        for alert in existing.values()
    ]
    created = [[new.events, new.resolved_at] for new in planned.new]
    assert stored + created == shelf.alerts
    assert len(planned.outcomes) == len(batch)
    still_open = [new.incoming.fingerprint for new in planned.new if new.resolved_at is None]
    grouped = [fingerprint for fingerprint in still_open if fingerprint]
    assert len(grouped) == len(set(grouped))
