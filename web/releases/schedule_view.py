"""Changes of the release schedule for display: state, date, page, and response headers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from flask import Response, current_app
from sqlalchemy import select
from werkzeug.http import http_date

from domain.releases.changes import Change
from domain.releases.listing import ChangeFilter, State, list_changes, state_of
from domain.releases.version import Release, parse_release, parse_release_dates
from models import Installation, InstanceSetting
from web.releases.requested_release import running_release
from web.services import services, settings
from web.settings.reader import Settings

PAGES = "/help/releases"
_INSTALLED_AT = select(Installation.installed_at)
_ENTERED_AT = select(InstanceSetting.updated_at).where(InstanceSetting.name == "release_dates")
_EXTENSION = "gatebell_installed_at"


def release_dates() -> Mapping[Release, date]:
    """Return the known dates of releases, in order of the releases."""
    return services().live_settings.derived(_dates)


def date_of(release: Release) -> date | None:
    """Return the date of a release, or None if it was not entered."""
    return release_dates().get(release)


def dates_entered_at() -> datetime | None:
    """Return the last change of the dates at runtime, or None if there was none."""
    found = services().connections.look_up(_ENTERED_AT, {})
    return found[0][0] if found else None


def installed_at() -> datetime:
    """Return the time of the installation, which is the same on all hosts.

    Each process reads it once.
    """
    kept: datetime | None = current_app.extensions.get(_EXTENSION)
    if kept is None:
        ((found,),) = services().connections.look_up(_INSTALLED_AT, {})
        kept = current_app.extensions[_EXTENSION] = found
    return kept


@dataclass(frozen=True, kw_only=True)
class ListedChange:
    """Change with its state, its date and its page."""

    change: Change
    state: State
    #: Date of its release, if an administrator has entered it.
    day: date | None
    #: Absolute URL of its page.
    url: str


def list_shown(wanted: ChangeFilter) -> Sequence[ListedChange]:
    """Return the changes that match a filter, in the order of the schedule."""
    return [show_change(each) for each in list_changes(wanted, running=running_release())]


def show_change(change: Change) -> ListedChange:
    """Return a change with its state, its date and its page."""
    return ListedChange(
        change=change,
        state=state_of(change, running=running_release()),
        day=date_of(change.removal),
        url=page_of(change),
    )


def page_of(change: Change) -> str:
    """Return the absolute URL of a change's page."""
    return f"{settings().base_url}{PAGES}/{change.id}"


def announced_at(change: Change) -> datetime:
    """Return when a change was announced: the date of that release, or of the installation."""
    day = date_of(parse_release(change.announced)) if change.announced else None
    return datetime.combine(day, time(), tzinfo=UTC) if day else installed_at()


def announce(response: Response, changes: Sequence[Change]) -> Response:
    """Add the headers of announced changes to a response.

    If there are several changes, the earliest dates are used, and each change has its own links.
    """
    announced = min(announced_at(change) for change in changes)
    response.headers["Deprecation"] = f"@{int(announced.timestamp())}"
    ends = [day for change in changes if (day := date_of(change.removal))]
    if ends:
        midnight = datetime.combine(min(ends), time(), tzinfo=UTC)
        response.headers["Sunset"] = http_date(midnight)
    for change in changes:
        for relation in ("deprecation", "sunset"):
            link = f'<{page_of(change)}>; rel="{relation}"; type="text/html"'
            response.headers.add("Link", link)
    return response


def _dates(current: Settings) -> Mapping[Release, date]:
    return parse_release_dates(current.release_dates)
