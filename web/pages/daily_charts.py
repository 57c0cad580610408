"""Charts of recent days for application pages and administration pages."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from domain.alerts.integrations.delivery_counts import MAX_DAY_COUNT, DeliveryCount
from domain.core.time_zones import convert_to_local, convert_to_utc, get_zone
from domain.oauth.applications.daily_usage import SHOWN_DAYS, DailyUsage
from web.pages.charts import Chart, Series, build_bar_chart, label_days

#: Maximum number of events that a chart counts.
MAX_EVENTS = 20_000


class TitledChart(NamedTuple):
    """A chart with its title, and a note about its values."""

    title: str
    chart: Chart
    note: str = ""


def list_last_days(now: datetime, time_zone: str) -> dict[date, datetime]:
    """Return the most recent days in a time zone with their start times, oldest first."""
    place = get_zone(time_zone)
    today = convert_to_local(now, place).date()
    days = [today - timedelta(days=offset) for offset in reversed(range(SHOWN_DAYS))]
    return {day: convert_to_utc(datetime.combine(day, time()), place) for day in days}


def build_usage_charts(use: DailyUsage, *, application_url: str) -> Sequence[TitledChart]:
    """Return the charts of an application's daily requests, issued tokens and rejected requests.

    Charts without values are left out.
    """
    calls = "API requests with a token of the application. Days are in UTC."
    issued = "Access tokens from all grants, including refreshed tokens. Days are in UTC."
    rejected = "Requests to sign in or for tokens. Only the newest with each reason are stored."
    labels = label_days(use.days)
    accepted = [count - errors for count, errors in zip(use.requests, use.errors, strict=True)]
    requests = [
        Series("bad", "Failed with status 400 or above", use.errors),
        Series("requests", "Successful", accepted),
    ]
    tokens = [Series("tokens", "Tokens issued", use.tokens)]
    rejections = [Series("bad", "Rejected requests", use.rejections)]
    links = [f"{application_url}?day={day}#rejected" for day in use.days]
    return [
        TitledChart(title, build_bar_chart(labels, series, links=lists), note)
        for title, series, note, lists in (
            ("API requests", requests, calls, ()),
            ("Tokens issued", tokens, issued, ()),
            ("Rejected requests", rejections, rejected, links),
        )
        if any(any(each.values) for each in series)
    ]


def build_instance_charts(
    days: dict[date, datetime],
    deliveries: Sequence[DeliveryCount],
    failures: Sequence[datetime],
    *,
    delivery_links: Sequence[str],
    failure_links: Sequence[str],
) -> Sequence[TitledChart]:
    """Return the charts of deliveries and failed sign-ins by day, with links to their lists."""
    labels, starts = label_days(days), [*days.values()]
    counts = Counter(bisect_right(starts, each) - 1 for each in failures)
    received = (
        Series("bad", "Rejected", [each.rejected for each in deliveries]),
        Series("received", "Accepted", [each.accepted for each in deliveries]),
    )
    failed = Series("bad", "Failed sign-ins", [counts[place] for place in range(len(days))])
    limit = f" At most {MAX_DAY_COUNT:,} deliveries of an integration are counted for a day."
    is_limited = any(sum(each) >= MAX_DAY_COUNT for each in deliveries)
    note = f"Deliveries of deleted integrations are not counted.{limit * is_limited}"
    last = f"Only the last {MAX_EVENTS:,} are counted." if len(failures) == MAX_EVENTS else ""
    return [
        TitledChart(title, build_bar_chart(labels, series, links=links), words)
        for title, series, links, words in (
            ("Deliveries of alerts", received, delivery_links, note),
            ("Failed sign-ins", (failed,), failure_links, last),
        )
    ]
