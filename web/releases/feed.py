"""The release schedule as an Atom feed (RFC 4287)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from flask import current_app

from domain.clock import written
from domain.releases.changes import Change
from web.releases.dates import dates_entered_at, installed_at
from web.releases.listed import PAGES, ListedChange, announced_at
from web.services import settings


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """An entry of the feed."""

    change: Change
    url: str
    published: str
    updated: str
    #: The release, with its day where that is known.
    release: str


def atom_feed(changes: Sequence[ListedChange], *, url: str) -> bytes:
    """Return the feed of changes, those of the last release first; `url` is its own."""
    entered_at = dates_entered_at()
    entries = [_entry(each, entered_at) for each in reversed(changes)]
    current = settings()
    # Without the context of pages, which asks for the user of a session.
    template = current_app.jinja_env.get_template("help/releases.xml")
    text = template.render(
        url=url,
        page_url=f"{current.base_url}{PAGES}",
        name=current.instance_name,
        updated=max((each.updated for each in entries), default=written(installed_at())),
        entries=entries,
    )
    return text.encode()


def _entry(listed: ListedChange, entered_at: datetime | None) -> _Entry:
    change, announced = listed.change, announced_at(listed.change)
    updated = max(announced, entered_at) if listed.day and entered_at else announced
    return _Entry(
        change=change,
        url=listed.url,
        published=written(announced),
        updated=written(updated),
        release=f"{change.release} ({listed.day})" if listed.day else change.release,
    )
