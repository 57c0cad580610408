"""Changes in the release schedule, for display: state, date, page, and response headers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from flask import Response, current_app
from sqlalchemy import select
from werkzeug.http import http_date

from domain.releases.changes import Change
from domain.releases.scheduled_changes import (
    ChangeFilter,
    ReleaseChangeState,
    get_change_state,
    list_changes,
)
from domain.releases.version import Release, parse_release, parse_release_dates
from models import Installation, InstanceSetting
from web.releases.requested_release import get_running_release
from web.services import get_services, get_settings
from web.settings.environment import Settings

SCHEDULE_PATH = "/help/releases"
_INSTALLED_AT_QUERY = select(Installation.installed_at)
_ENTERED_AT_QUERY = select(InstanceSetting.updated_at).where(
    InstanceSetting.name == "release_dates"
)
_EXTENSION_KEY = "gatebell_installed_at"


def get_release_dates() -> Mapping[Release, date]:
    """Return the known dates of releases, in release order."""
    return get_services().live_settings.get_derived_value(_parse_dates)


def find_release_date(release: Release) -> date | None:
    """Return the date of a release, or None if it is unknown."""
    return get_release_dates().get(release)


def find_dates_change_time() -> datetime | None:
    """Return the time when the dates were last changed at runtime, or None."""
    found = get_services().connections.fetch_rows(_ENTERED_AT_QUERY, {})
    return found[0][0] if found else None


def get_installation_time() -> datetime:
    """Return the time of the installation, which is the same on all hosts.

    Each process reads the time only once.
    """
    kept: datetime | None = current_app.extensions.get(_EXTENSION_KEY)
    if kept is None:
        ((found,),) = get_services().connections.fetch_rows(_INSTALLED_AT_QUERY, {})
        kept = current_app.extensions[_EXTENSION_KEY] = found
    return kept


@dataclass(frozen=True, kw_only=True)
class ListedChange:
    """Change with its state, its date and its page."""

    change: Change
    state: ReleaseChangeState
    #: Date of the change's release, if an administrator has entered the date.
    day: date | None
    #: Absolute URL of the change's page.
    url: str


def list_displayed_changes(change_filter: ChangeFilter) -> Sequence[ListedChange]:
    """Return the changes that match a filter, in the order of the schedule."""
    return [
        build_listed_change(each)
        for each in list_changes(change_filter, running=get_running_release())
    ]


def build_listed_change(change: Change) -> ListedChange:
    """Return a change with its state, its date and its page."""
    return ListedChange(
        change=change,
        state=get_change_state(change, running=get_running_release()),
        day=find_release_date(change.effective_release),
        url=build_change_url(change),
    )


def build_change_url(change: Change) -> str:
    """Return the absolute URL of a change's page."""
    return f"{get_settings().base_url}{SCHEDULE_PATH}/{change.id}"


def get_announcement_date(change: Change) -> datetime:
    """Return the date of the release that announced a change.

    If the release or its date is unknown, return the time of the installation.
    """
    day = find_release_date(parse_release(change.announced)) if change.announced else None
    return datetime.combine(day, time(), tzinfo=UTC) if day else get_installation_time()


def add_announcement_headers(response: Response, changes: Sequence[Change]) -> Response:
    """Add the headers of announced changes to a response.

    If there are several changes, the earliest dates are used, and each change has its own links.
    """
    announced = min(get_announcement_date(change) for change in changes)
    response.headers["Deprecation"] = f"@{int(announced.timestamp())}"
    ends = [day for change in changes if (day := find_release_date(change.effective_release))]
    if ends:
        midnight = datetime.combine(min(ends), time(), tzinfo=UTC)
        response.headers["Sunset"] = http_date(midnight)
    for change in changes:
        for relation in ("deprecation", "sunset"):
            link = f'<{build_change_url(change)}>; rel="{relation}"; type="text/html"'
            response.headers.add("Link", link)
    return response


def _parse_dates(current: Settings) -> Mapping[Release, date]:
    return parse_release_dates(current.release_dates)
