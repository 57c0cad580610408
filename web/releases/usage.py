"""Which calls are looked at where somebody asks what a release would change for them."""

from datetime import date, datetime, timedelta

from domain.api_usage.reading import Period
from domain.releases.version import Release, parse_release
from web.settings.reader import Settings


def whole_period(current: Settings, now: datetime) -> Period:
    """Return all calls that are kept, and all changes."""
    return Period(since=_since(current, now), running=parse_release(current.release))


def rehearsal(current: Settings, release: Release, now: datetime) -> Period:
    """Return all calls that are kept, and the changes up to a later release."""
    return Period(
        since=_since(current, now),
        running=parse_release(current.release),
        until=release,
        is_ahead=True,
    )


def _since(current: Settings, now: datetime) -> date:
    return (now - timedelta(days=current.call_keep_days)).date()
