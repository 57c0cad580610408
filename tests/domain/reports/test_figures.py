"""Periods, percentiles and proposals of reports."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.paging.on_call.schedule_plans import Period
from domain.reports.figures import ReportFigures, TimeBuckets, compute_percentile
from domain.reports.noisy_rules import NoisyRuleCounter
from domain.reports.report_queries import CountedAlert, CountedPage, RankedRule, StatusEntry
from domain.reports.types import ReportPeriod, ReportQuery, TrendUnit

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
    entry = StatusEntry(status="acknowledged", at=NOON, by="alice", is_automatic=False)
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
    counted = NoisyRuleCounter(
        [RankedRule(project_id=7, title="Disk full", fingerprints=1, pages=0)]
    )
    for alert in opened(4, answered, **case):
        counted.count_alert(alert)
    (rule,) = counted.build_noisy_rules({7: "acme/shop"})
    assert (rule.project, rule.proposal) == ("acme/shop", proposal)
    assert figure in rule.reason


@pytest.mark.parametrize(
    ("case", "before", "after"),
    [
        ({"every": 60 * MINUTE, "lasts": 11 * MINUTE}, 0, 1),
        ({"every": 60 * MINUTE, "lasts": 11 * MINUTE}, 3, 4),
        ({"every": 60 * MINUTE, "lasts": 10 * MINUTE}, 0, 1),
        ({"every": 5 * MINUTE, "lasts": None}, 0, 1),
    ],
)
def test_one_acknowledgement_of_eight_alerts_does_not_change_the_proposal(
    case: dict[str, Any], before: int, after: int
) -> None:
    proposals = set()
    for answered in (before, after):
        rule = RankedRule(project_id=7, title="Disk full", fingerprints=1, pages=0)
        counted = NoisyRuleCounter([rule])
        for alert in opened(8, answered, **case):
            counted.count_alert(alert)
        proposals |= {each.proposal for each in counted.build_noisy_rules({7: "acme/shop"})}
    assert len(proposals) == 1


def test_days_of_a_trend_follow_the_clock_of_the_reader() -> None:
    start = datetime(2026, 3, 27, 23, tzinfo=UTC)
    buckets = TimeBuckets(Period(start, start + timedelta(days=4)), "Europe/Berlin")
    assert buckets.unit is TrendUnit.DAY
    # The clock goes forward on 29 March, so that the next day starts an hour earlier in UTC.
    assert [each.hour for each in buckets.starts] == [23, 23, 22, 22, 22]
    assert buckets.find_index(datetime(2026, 3, 29, 21, 59, tzinfo=UTC)) == 1
    assert buckets.find_index(datetime(2026, 3, 29, 22, 0, tzinfo=UTC)) == 2


@pytest.mark.parametrize(
    ("days", "unit", "count"), [(1, "hour", 25), (30, "day", 31), (90, "week", 13)]
)
def test_the_unit_of_a_trend_depends_on_the_length(days: int, unit: str, count: int) -> None:
    start = NOON + 5 * MINUTE
    buckets = TimeBuckets(Period(start, start + timedelta(days=days)), "UTC")
    assert (buckets.unit, len(buckets.starts)) == (unit, count)


def test_pages_are_counted_by_weekday_and_hour() -> None:
    figures = ReportFigures("Europe/Berlin", Period(NOON, NOON + timedelta(days=7)))
    page = CountedPage(NOON, None, 1, "alice", "UTC", None)
    for each in (page, page._replace(at=NOON + 60 * MINUTE), page._replace(channel_id=3)):
        figures.count_page(each)
    counts = figures.count_pages_by_weekday()
    assert (counts[0][13], counts[0][14], sum(map(sum, counts))) == (1, 1, 2)
    assert figures.count_pages_by_hour()[13:15] == [1, 1]
