"""Charts by day of the pages of applications and of the administration."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from domain.alerts.integrations.delivery_hours import MAX_DAY_COUNT, DeliveryCount
from domain.core.time_zones import convert_to_local, convert_to_utc, get_zone
from domain.oauth.applications.daily_use import DailyUse
from web.pages.charts import Chart, Series, build_bars, label_days

SHOWN_DAYS = 14
#: Maximum number of events that a chart counts.
MAX_EVENTS = 20_000


class TitledChart(NamedTuple):
    """A chart with its title, and a note on what it counts."""

    title: str
    chart: Chart
    note: str = ""


class LocalDay(NamedTuple):
    """A day in a time zone, and the time at which it starts."""

    day: date
    start: datetime


def list_last_days(now: datetime, time_zone: str) -> tuple[LocalDay, ...]:
    """Return the last days in a time zone, including today, oldest first."""
    place = get_zone(time_zone)
    today = convert_to_local(now, place).date()
    days = [today - timedelta(days=offset) for offset in reversed(range(SHOWN_DAYS))]
    return tuple(
        LocalDay(day, convert_to_utc(datetime.combine(day, time()), place)) for day in days
    )


def build_use_charts(use: DailyUse) -> tuple[TitledChart, ...]:
    """Return the charts of an application that have a value."""
    found = (
        (
            *("API requests", "requests", use.requests),
            "API requests with a token of the application. Days are in UTC.",
        ),
        (
            *("Tokens issued", "tokens", use.tokens),
            "Access tokens from all grants, including refreshed tokens. Days are in UTC.",
        ),
        (
            *("Rejected requests", "bad", use.rejections),
            "Requests to sign in or for tokens. Only the newest with each reason are stored.",
        ),
    )
    labels = label_days(use.days)
    return tuple(
        TitledChart(
            title, build_bars(labels, [Series(name=name, label=title, values=values)]), note
        )
        for title, name, values, note in found
        if values and any(values)
    )


def build_instance_charts(
    days: Sequence[LocalDay], deliveries: Sequence[DeliveryCount], failures: Sequence[datetime]
) -> tuple[TitledChart, ...]:
    """Return the charts of deliveries and failed sign-ins by day."""
    labels = label_days(each.day for each in days)
    starts = [each.start for each in days]
    counts = Counter(bisect_right(starts, each) - 1 for each in failures)
    received = [
        Series(name="bad", label="Rejected", values=[each.rejected for each in deliveries]),
        Series(name="received", label="Accepted", values=[each.accepted for each in deliveries]),
    ]
    failed = [counts[day] for day in range(len(days))]
    return (
        TitledChart(
            "Deliveries of alerts",
            build_bars(labels, received),
            f"At most {MAX_DAY_COUNT:,} deliveries of an integration are counted for a day."
            if any(sum(each) >= MAX_DAY_COUNT for each in deliveries)
            else "",
        ),
        TitledChart(
            "Failed sign-ins",
            build_bars(labels, [Series(name="bad", label="Failed sign-ins", values=failed)]),
            f"Only the last {MAX_EVENTS:,} are counted." if len(failures) == MAX_EVENTS else "",
        ),
    )
