"""The releases that have a date as a calendar (RFC 5545, RFC 7986).

icalendar is loaded with the first calendar: it takes 5 MiB of each process.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from domain.releases.changes import Change
from domain.releases.listing import by_release
from domain.releases.version import Release
from web.releases.dates import date_of, dates_entered_at, installed_at
from web.releases.listed import PAGES, ListedChange, page_of
from web.services import settings

if TYPE_CHECKING:
    from icalendar import Event

_REFRESHED_EVERY = timedelta(days=1)
_DAY = timedelta(days=1)


def calendar(changes: Sequence[ListedChange], *, url: str) -> bytes:
    """Return a day for each release with a date, with its changes; `url` is the calendar's own."""
    from icalendar import Calendar  # noqa: PLC0415 - see above

    made = Calendar.new(
        prodid="-//Gatebell//Release schedule//EN",
        name=f"Releases of {settings().instance_name}",
        uid=url,
        url=f"{settings().base_url}{PAGES}",
    )
    # Their types have to be said (RFC 7986 sections 5.7 and 5.8).
    made.add("REFRESH-INTERVAL", _REFRESHED_EVERY, parameters={"VALUE": "DURATION"})
    made.add("SOURCE", url, parameters={"VALUE": "URI"})
    for release, members in by_release([each.change for each in changes]):
        event = _event(release, members)
        if event is not None:
            made.add_component(event)
    content: bytes = made.to_ical()
    return content


def _event(release: Release, changes: Sequence[Change]) -> "Event | None":
    from icalendar import Event  # noqa: PLC0415 - see above
    from icalendar.enums import TRANSP  # noqa: PLC0415 - see above

    day = date_of(release)
    if day is None:
        return None
    base_url = settings().base_url
    count = f"{len(changes)} {'change' if len(changes) == 1 else 'changes'}"
    event: Event = Event.new(
        uid=f"release-{release}@{urlsplit(base_url).hostname}",
        summary=f"Release {release}: {count} of interfaces",
        description="\n\n".join(
            f"{each.title}. {each.replacement}\n{page_of(each)}" for each in changes
        ),
        start=day,
        end=day + _DAY,
        stamp=dates_entered_at() or installed_at(),
        url=f"{base_url}{PAGES}?release={release}",
        transparency=TRANSP.TRANSPARENT,
    )
    return event
