"""Release schedule as an Atom feed (RFC 4287) and a calendar (RFC 5545, RFC 7986).

icalendar is imported for the first calendar, because it needs 5 MiB of memory in each process.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from flask import Response, current_app, request

from domain.core.clock import format_api_time
from domain.releases.changes import Change
from domain.releases.scheduled_changes import group_by_release
from domain.releases.version import Release
from web.releases.schedule_view import (
    SCHEDULE_PATH,
    ListedChange,
    build_change_url,
    find_dates_change_time,
    find_release_date,
    get_announcement_date,
    get_installation_time,
)
from web.services import get_settings

#: Seconds for which caches may keep public documents before revalidating them by ETag.
_CACHE_SECONDS = 300
_ETAG_BYTES = 16
_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class _FeedEntry:
    """Change in the release schedule, as an entry in the Atom feed."""

    change: Change
    url: str
    published: str
    updated: str
    #: Release, with its date if known.
    release: str


def build_atom_feed(changes: Sequence[ListedChange], *, url: str) -> bytes:
    """Return the Atom feed of changes, latest release first.

    `url` is the URL of the feed.
    """
    entered_at = find_dates_change_time()
    entries = [_build_feed_entry(each, entered_at) for each in reversed(changes)]
    current = get_settings()
    # The page context would load the session's user, so it is not used.
    template = current_app.jinja_env.get_template("help/releases.xml")
    text = template.render(
        url=url,
        page_url=f"{current.base_url}{SCHEDULE_PATH}",
        name=current.instance_name,
        updated=max(
            (each.updated for each in entries), default=format_api_time(get_installation_time())
        ),
        entries=entries,
    )
    return text.encode()


def _build_feed_entry(listed_change: ListedChange, entered_at: datetime | None) -> _FeedEntry:
    change, announced = listed_change.change, get_announcement_date(listed_change.change)
    updated = max(announced, entered_at) if listed_change.day and entered_at else announced
    return _FeedEntry(
        change=change,
        url=listed_change.url,
        published=format_api_time(announced),
        updated=format_api_time(updated),
        release=f"{change.release} ({listed_change.day})" if listed_change.day else change.release,
    )


if TYPE_CHECKING:
    from icalendar import Event


def build_release_calendar(changes: Sequence[ListedChange], *, url: str) -> bytes:
    """Return a calendar with an event for each release that has a date.

    The event lists the changes of the release. `url` is the URL of the calendar.
    """
    from icalendar import Calendar  # noqa: PLC0415 - see above

    made = Calendar.new(
        prodid="-//Gatebell//Release schedule//EN",
        name=f"Releases of {get_settings().instance_name}",
        uid=url,
        url=f"{get_settings().base_url}{SCHEDULE_PATH}",
    )
    # The types of these properties must be declared (RFC 7986 sections 5.7 and 5.8).
    made.add("REFRESH-INTERVAL", _DAY, parameters={"VALUE": "DURATION"})
    made.add("SOURCE", url, parameters={"VALUE": "URI"})
    for release, members in group_by_release([each.change for each in changes]):
        event = _build_release_event(release, members)
        if event is not None:
            made.add_component(event)
    content: bytes = made.to_ical()
    return content


def _build_release_event(release: Release, changes: Sequence[Change]) -> "Event | None":
    from icalendar import Event  # noqa: PLC0415 - see above
    from icalendar.enums import TRANSP  # noqa: PLC0415 - see above

    day = find_release_date(release)
    if day is None:
        return None
    base_url = get_settings().base_url
    count = f"{len(changes)} interface {'change' if len(changes) == 1 else 'changes'}"
    event: Event = Event.new(
        uid=f"release-{release}@{urlsplit(base_url).hostname}",
        summary=f"Release {release}: {count}",
        description="\n\n".join(
            f"{each.title}. {each.replacement}\n{build_change_url(each)}" for each in changes
        ),
        start=day,
        end=day + _DAY,
        stamp=find_dates_change_time() or get_installation_time(),
        url=f"{base_url}{SCHEDULE_PATH}?release={release}",
        transparency=TRANSP.TRANSPARENT,
    )
    return event


def allow_public_caching(response: Response) -> Response:
    """Let shared caches store a response that is the same for everyone."""
    response.cache_control.public = True
    response.cache_control.max_age = _CACHE_SECONDS
    return response


def build_cacheable_response(content: bytes, content_type: str) -> Response:
    """Return a document with an ETag, or 304 for a matching If-None-Match (RFC 9110 section 13)."""
    response = Response(content, content_type=content_type)
    response.set_etag(blake2b(content, digest_size=_ETAG_BYTES).hexdigest())
    allow_public_caching(response)
    response.make_conditional(request.environ)
    return response
