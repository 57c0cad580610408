"""Short times on pages, and the time zones that users choose from."""

from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask, g

from domain.core.time_zones import list_zone_choices, normalize_zone_name
from web.pages.templating import format_short_time

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
