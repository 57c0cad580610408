"""/help/releases.atom and /help/releases.ics: the release schedule to subscribe to."""

from urllib.parse import urlencode

from flask import Response, request, url_for

from domain.types.reading import read_query
from web.access.marks import open_to_anyone
from web.api.description.described import METADATA, Description, described
from web.api.schemas.releases.release_changes import ReleaseFilterQuery
from web.http.cors import CorsPolicy
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.public_urls import public_url
from web.releases.caching import cached_document
from web.releases.calendar import calendar
from web.releases.feed import atom_feed
from web.releases.listed import ListedChange, list_shown

release_feeds = MachineBlueprint(
    "release_feeds", __name__, url_prefix="/help", errors=ErrorFormat.API
)
ATOM, ICALENDAR = "application/atom+xml", "text/calendar"


@release_feeds.get("/releases.atom")
@described(
    Description(
        name="release_schedule.atom",
        tag=METADATA,
        query=ReleaseFilterQuery,
        content_type=ATOM,
        errors=(400,),
        is_conditional=True,
    )
)
@open_to_anyone.but(cross_origin=CorsPolicy())
def atom() -> Response:
    """Return the release schedule as an Atom feed."""
    return cached_document(atom_feed(_wanted(), url=_own_url()), f"{ATOM}; charset=utf-8")


@release_feeds.get("/releases.ics")
@described(
    Description(
        name="release_schedule.calendar",
        tag=METADATA,
        query=ReleaseFilterQuery,
        content_type=ICALENDAR,
        errors=(400,),
        is_conditional=True,
    )
)
@open_to_anyone.but(cross_origin=CorsPolicy())
def ics() -> Response:
    """Return the releases that have a date as a calendar."""
    return cached_document(calendar(_wanted(), url=_own_url()), f"{ICALENDAR}; charset=utf-8")


def _wanted() -> list[ListedChange]:
    query = read_query(ReleaseFilterQuery, dict(request.args.lists()))
    return [*list_shown(query.wanted)]


def _own_url() -> str:
    """Return the URL of this feed with its filter, in one spelling."""
    url = public_url(url_for(request.endpoint or ""))
    given = sorted((name, value) for name, value in request.args.items() if value)
    return f"{url}?{urlencode(given)}" if given else url
