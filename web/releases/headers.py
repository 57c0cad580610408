"""Headers of what a later release changes: Deprecation (RFC 9745), Sunset (RFC 8594) and Link."""

from collections.abc import Sequence
from datetime import UTC, datetime, time

from flask import Response
from werkzeug.http import http_date

from domain.releases.changes import Change
from web.releases.dates import date_of
from web.releases.listed import announced_at, page_of


def announce(response: Response, changes: Sequence[Change]) -> Response:
    """Add the headers of announced changes to a response.

    Of several, the earliest dates count; each has its links.
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
