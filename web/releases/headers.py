"""Headers of what a later release changes: Deprecation (RFC 9745), Sunset (RFC 8594) and Link."""

from collections.abc import Sequence
from datetime import UTC, datetime, time

from flask import Response
from werkzeug.http import http_date

from domain.releases.changes import Change
from domain.releases.version import parse_release
from web.releases.dates import date_of, installed_at
from web.services import settings

HELP = "/help/releases"


def page_of(change: Change) -> str:
    """Return the URL of the page of a change."""
    return f"{settings().base_url}{HELP}/{change.id}"


def _announced_at(change: Change) -> datetime:
    """Return when a change was announced here: with this service, where nothing else is known."""
    day = date_of(parse_release(change.announced)) if change.announced else None
    return datetime.combine(day, time(), tzinfo=UTC) if day else installed_at()


def announce(response: Response, changes: Sequence[Change]) -> Response:
    """Add the headers of announced changes to a response.

    Of several, the earliest dates count; each has its links.
    """
    announced = min(_announced_at(change) for change in changes)
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
