"""Short times on pages, and the time zones that users choose from."""

from datetime import UTC, date, datetime, timedelta

import pytest
from flask import Flask, g

from domain.core.time_zones import list_zone_choices, normalize_zone_name
from web.pages.templating import format_day, format_event_detail, format_short_time

NOON = datetime(2026, 11, 29, 12, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds_ago", "text"),
    [
        (3, "13:00 (just now)"),
        (-6, "13:00 (in a moment)"),
        (-40, "13:01 (in 40 s)"),
        (150, "12:58 (2 min ago)"),
        (-150, "13:03 (in 3 min)"),
        (-5_400, "14:30 (in 1 h 30 min)"),
        (-7_090, "14:58 (in 1 h 59 min)"),
        (-7_190, "15:00 (in 2 h)"),
        (46_800, "00:00 (13 h ago)"),
        (-39_600, "30 Nov 00:00 (in 11 h)"),
        (48_600, "28 Nov 23:30"),
        (30_000_000, "17 Dec 2025 07:40"),
    ],
)
def test_short_times_have_a_date_only_on_other_days(seconds_ago: int, text: str) -> None:
    with Flask(__name__).test_request_context():
        g.viewer_zone = "Europe/Berlin"
        assert format_short_time(NOON - timedelta(seconds=seconds_ago), NOON) == text


def test_users_choose_from_canonical_time_zones_with_their_offsets() -> None:
    winter = dict(list_zone_choices(NOON))
    summer = dict(list_zone_choices(NOON + timedelta(days=200)))
    assert (winter["Europe/Berlin"], summer["Europe/Berlin"]) == ("UTC+01:00", "UTC+02:00")
    assert (winter["Asia/Kathmandu"], winter["America/St_Johns"]) == ("UTC+05:45", "UTC-03:30")
    assert next(iter(winter)) == "UTC"
    assert not {"Zulu", "W-SU", "US/Pacific", "Etc/GMT+5", "EST"} & set(winter)
    assert 300 < len(winter) < 450
    # Old names that are stored or that browsers report are kept.
    assert normalize_zone_name("asia/calcutta") == "Asia/Calcutta"


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ("2026-12-05T08:00:00.000Z", "2026-12-05 08:00:00 UTC"),
        ("2026-11-26T18:36:46+01:00", "2026-11-26 17:36:46 UTC"),
        # The local time of a maintenance window.
        ("2026-11-11T03:00", "2026-11-11 03:00"),
        ("2026-11-11", "2026-11-11"),
        ("at 2026-12-05T08:00:00Z", "at 2026-12-05T08:00:00Z"),
    ],
)
def test_times_in_audit_events_are_readable(stored: str, text: str) -> None:
    assert format_event_detail(stored) == text


def test_days_are_written_like_times() -> None:
    assert format_day(date(2027, 1, 4)) == "4 Jan 2027"
