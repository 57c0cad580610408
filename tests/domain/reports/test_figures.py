"""Periods, percentiles and proposals of reports."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.paging.on_call.schedule_values import Period
from domain.reports.figures import compute_percentile
from domain.reports.noise import NoisyRules
from domain.reports.rows import CountedAlert, RankedRule, StatusEntry
from domain.reports.types import ReportPeriod, ReportQuery

MINUTE = timedelta(minutes=1)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "time_zone", "start", "end"),
    [
        ("2026-03-02T12:00", "UTC", "2026-03-01T18:00", "2026-03-02T09:00"),
        # During the night it is the current night, and in the evening still the previous one.
        ("2026-03-02T03:00", "UTC", "2026-03-01T18:00", "2026-03-02T09:00"),
        ("2026-03-02T23:00", "UTC", "2026-03-01T18:00", "2026-03-02T09:00"),
        ("2026-03-02T23:30", "Europe/Berlin", "2026-03-02T17:00", "2026-03-03T08:00"),
        # The night has fourteen hours, because the clock goes forward.
        ("2026-03-29T12:00", "europe/berlin", "2026-03-28T17:00", "2026-03-29T07:00"),
    ],
)
def test_last_night_is_in_the_time_zone_of_the_reader(
    now: str, time_zone: str, start: str, end: str
) -> None:
    moment, *expected = (datetime.fromisoformat(f"{each}Z") for each in (now, start, end))
    query = ReportQuery(period=ReportPeriod.NIGHT, time_zone=time_zone)
    assert query.build_period(moment) == Period(*expected)


def test_nine_of_ten_values_are_at_most_the_90th_percentile() -> None:
    assert compute_percentile(map(float, range(1, 11)), 90) == 9
    assert compute_percentile([5.0, 1.0], 90) == 5
    assert compute_percentile([], 90) is None


def opened(
    count: int, answered: int, *, every: timedelta, lasts: timedelta | None
) -> list[CountedAlert]:
    entry = StatusEntry(status="acknowledged", at=NOON, by="alice", is_by_itself=False)
    return [
        CountedAlert(
            id=number,
            project_id=7,
            iid=number,
            title="Disk full",
            severity="high",
            status="resolved" if lasts else "triggered",
            created_at=NOON + number * every,
            started_at=NOON + number * every,
            ended_at=NOON + number * every + lasts if lasts else None,
            recovery_received_at=None,
            entries=[entry] if number < answered else [],
        )
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("case", "answered", "proposal", "figure"),
    [
        ({"every": 60 * MINUTE, "lasts": 10 * MINUTE}, 1, "threshold", "3 of 4 alerts ended"),
        ({"every": 60 * MINUTE, "lasts": 11 * MINUTE}, 0, "silence", "any of the 4"),
        ({"every": 60 * MINUTE, "lasts": 11 * MINUTE}, 3, "cause", "acted on 3 of 4"),
        ({"every": 5 * MINUTE, "lasts": None}, 0, "group", "3 of 4 alerts opened"),
        ({"every": 11 * MINUTE, "lasts": None}, 1, "cause", "acted on 1 of 4"),
    ],
)
def test_a_noisy_rule_gets_a_proposal_with_its_reason(
    case: dict[str, Any], answered: int, proposal: str, figure: str
) -> None:
    counted = NoisyRules([RankedRule(project_id=7, title="Disk full", fingerprints=1, pages=0)])
    for alert in opened(4, answered, **case):
        counted.count_alert(alert)
    (rule,) = counted.build_noisy_rules({7: "acme/shop"})
    assert (rule.project, rule.proposal) == ("acme/shop", proposal)
    assert figure in rule.reason
