"""When releases come, where an administrator entered it, and since when the installation exists."""

from collections.abc import Mapping
from datetime import date, datetime

from flask import current_app
from sqlalchemy import select

from domain.releases.dates import parse_release_dates
from domain.releases.version import Release
from models import Installation, InstanceSetting
from web.services import services
from web.settings.reader import Settings

_INSTALLED_AT = select(Installation.installed_at)
_ENTERED_AT = select(InstanceSetting.updated_at).where(InstanceSetting.name == "release_dates")
_EXTENSION = "gatebell_installed_at"


def release_dates() -> Mapping[Release, date]:
    """Return the dates that are known, the first release first."""
    return services().live_settings.derived(_dates)


def date_of(release: Release) -> date | None:
    """Return the day of a release, or None if nobody entered it."""
    return release_dates().get(release)


def dates_entered_at() -> datetime | None:
    """Return when the dates were last changed while the service ran; None without a change."""
    found = services().connections.look_up(_ENTERED_AT, {})
    return found[0][0] if found else None


def installed_at() -> datetime:
    """Return when the installation was made: the same on all hosts, read once by each process."""
    kept: datetime | None = current_app.extensions.get(_EXTENSION)
    if kept is None:
        ((found,),) = services().connections.look_up(_INSTALLED_AT, {})
        kept = current_app.extensions[_EXTENSION] = found
    return kept


def _dates(current: Settings) -> Mapping[Release, date]:
    return parse_release_dates(current.release_dates)
