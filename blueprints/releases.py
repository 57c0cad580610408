"""The release schedule at /help/releases, its feeds, and its checker."""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from urllib.parse import urlencode

from flask import Response, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.core.errors import InvalidError, NotFoundError
from domain.core.types.reading import read_query
from domain.releases.changes import Certainty
from domain.releases.checker.findings import Report
from domain.releases.listing import ChangeFilter, State, effect_of, example_of, releases_on_schedule
from domain.releases.schedule import BY_ID
from domain.releases.usage.reading import changes_used_by
from domain.releases.version import Release
from forms.releases import ReleaseCheckForm, ReleaseFilterForm
from web.access.api_limits import Family, count_request
from web.access.decorators import open_to_anyone, to_sign_in, viewer
from web.api.description.described import METADATA, Description
from web.api.release_checks import handed_in, run_check
from web.api.schemas.releases import ReleaseFilterQuery
from web.extensions import db
from web.http.cors import CorsPolicy
from web.http.endpoints import ErrorFormat, MachineBlueprint, PageBlueprint
from web.http.extensions import csrf
from web.http.public_urls import public_url
from web.pages.list_query import list_query
from web.releases.feeds import atom_feed, cached_document, calendar
from web.releases.rehearsal import whole_period
from web.releases.requested_release import running_release
from web.releases.schedule_view import ListedChange, date_of, list_shown, show_change
from web.services import now, settings

release_schedule = PageBlueprint("release_schedule", __name__, url_prefix="/help/releases")
release_check = PageBlueprint("release_check", __name__, url_prefix="/help/releases/check")
release_feeds = MachineBlueprint(
    "release_feeds", __name__, url_prefix="/help", errors=ErrorFormat.API
)
_ATOM, _ICALENDAR = "application/atom+xml", "text/calendar"
#: Filters that feeds support as well.
_FILTERS = ("release", "interface", "state")


@release_schedule.get("")
@open_to_anyone
def index() -> ResponseReturnValue:
    """List the changes by release, filtered by the form."""
    list_query(*_FILTERS, "used_by")
    form = ReleaseFilterForm()
    if form.used_by.data and not _is_signed_in():
        return to_sign_in()
    is_valid, used = form.validate(), _changes_of_viewer()
    listed = list_shown(form.wanted()) if is_valid else ()
    if form.used_by.data:
        listed = [each for each in listed if each.change.id in used]
    page = render_template(
        "help/releases.html",
        form=form,
        releases=_by_release(listed),
        running=running_release(),
        announced=len(list_shown(ChangeFilter(state=State.ANNOUNCED))),
        used=used,
        is_signed_in=_is_signed_in(),
        given={name: request.args[name] for name in _FILTERS if request.args.get(name)},
    )
    return page, 200 if is_valid else 400


@release_schedule.get("/<change_id>")
@open_to_anyone
def show(change_id: str) -> ResponseReturnValue:
    """Show a change, and how to try the behavior before and after it."""
    change = BY_ID.get(change_id)
    if change is None:
        raise NotFoundError("This change is not on the release schedule.")
    return render_template(
        "help/release_change.html",
        listed=show_change(change),
        change=change,
        effect=effect_of(change),
        example=example_of(change),
        running=running_release(),
        used=_changes_of_viewer().get(change.id),
        base_url=settings().base_url,
    )


def _is_signed_in() -> bool:
    return viewer().user_id is not None


def _changes_of_viewer() -> Mapping[str, Certainty]:
    """Return the ids of the changes that affect calls of the viewer's tokens and applications."""
    if not _is_signed_in():
        return {}
    moment = now()
    period = whole_period(settings(), moment)
    return changes_used_by(viewer(), period, session=db.session(), now=moment)


def _by_release(
    listed: Sequence[ListedChange],
) -> Sequence[tuple[Release, date | None, Sequence[ListedChange]]]:
    """Group the changes by release, with the date of each release."""
    return [
        (release, date_of(release), members)
        for release in releases_on_schedule()
        if (members := [each for each in listed if each.change.removal == release])
    ]


@release_check.get("", endpoint="show")
@open_to_anyone
def show_check() -> ResponseReturnValue:
    """Show the form of the release checker."""
    return _check_page(ReleaseCheckForm())


@release_check.post("", endpoint="create")
@open_to_anyone.but(writes=False, is_heavy=True)
@csrf.exempt  # type: ignore[untyped-decorator]
def check() -> ResponseReturnValue:
    """Show what a release breaks.

    The check changes nothing, so forms of other sites may submit to it without a CSRF token.
    """
    count_request(Family.RELEASE_CHECKS)
    try:
        given = handed_in()
    except InvalidError as error:
        return _refused_check(ReleaseCheckForm(), error)
    form = ReleaseCheckForm(given)
    if not form.validate():
        return _check_page(form), 400
    try:
        report = run_check(
            form.shown_name, form.text, form.target, is_anonymous=not _is_signed_in()
        )
    except InvalidError as error:
        return _refused_check(form, error)
    return _check_page(form, report)


def _refused_check(form: ReleaseCheckForm, error: InvalidError) -> ResponseReturnValue:
    form.object_to(error.field, str(error))
    return _check_page(form), 400


def _check_page(form: ReleaseCheckForm, report: Report | None = None) -> str:
    form.content.data = ""  # it may contain secrets, so it is not sent back
    return render_template(
        "help/release_check.html",
        form=form,
        report=report,
        limit=settings().release_check_limit_bytes,
    )


_feed = partial(
    Description, tag=METADATA, query=ReleaseFilterQuery, errors=(400,), is_conditional=True
)


@release_feeds.get("/releases.atom")
@_feed(name="release_schedule.atom", content_type=_ATOM)
@open_to_anyone.but(cross_origin=CorsPolicy())
def atom() -> Response:
    """Return the release schedule as an Atom feed."""
    return cached_document(atom_feed(_wanted(), url=_own_url()), f"{_ATOM}; charset=utf-8")


@release_feeds.get("/releases.ics")
@_feed(name="release_schedule.calendar", content_type=_ICALENDAR)
@open_to_anyone.but(cross_origin=CorsPolicy())
def ics() -> Response:
    """Return the dated releases as a calendar."""
    return cached_document(calendar(_wanted(), url=_own_url()), f"{_ICALENDAR}; charset=utf-8")


def _wanted() -> list[ListedChange]:
    query = read_query(ReleaseFilterQuery, dict(request.args.lists()))
    return [*list_shown(query.wanted)]


def _own_url() -> str:
    """Return the canonical URL of this feed with its filters."""
    url = public_url(url_for(request.endpoint or ""))
    given = sorted((name, value) for name, value in request.args.items() if value)
    return f"{url}?{urlencode(given)}" if given else url
