"""The release schedule at /help/releases, its feeds, and the release checker."""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from urllib.parse import urlencode

from flask import Response, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.core.errors import InvalidError, NotFoundError
from domain.core.types.validation import validate_query
from domain.releases.checker.findings import CheckReport
from domain.releases.schedule import CHANGES_BY_ID
from domain.releases.scheduled_changes import (
    ChangeFilter,
    ReleaseChangeState,
    build_example_request,
    describe_effect,
    list_scheduled_releases,
)
from domain.releases.usage.usage_reports import AffectedCallCount, find_affected_call_counts
from domain.releases.version import Release
from forms.releases import ReleaseCheckForm, ReleaseFilterForm
from web.access.api_limits import RateLimitGroup, count_rate_limited_request
from web.access.decorators import get_request_viewer, open_to_anyone, redirect_to_sign_in
from web.api.openapi.view_descriptions import METADATA, ViewDescription
from web.api.release_checks import read_check_parameters, run_release_check
from web.api.schemas.releases import ReleaseFilterQuery
from web.extensions import db
from web.http.cors import CorsPolicy
from web.http.endpoints import ApiClientBlueprint, ErrorFormat, PageBlueprint
from web.http.extensions import csrf
from web.http.public_urls import build_public_url
from web.pages.list_query import get_list_query
from web.releases.feeds import build_atom_feed, build_cacheable_response, build_release_calendar
from web.releases.rehearsal import build_full_usage_period
from web.releases.requested_release import get_running_release
from web.releases.schedule_view import (
    ListedChange,
    build_listed_change,
    find_release_date,
    list_displayed_changes,
)
from web.services import get_current_time, get_settings

release_schedule = PageBlueprint("release_schedule", __name__, url_prefix="/help/releases")
release_check = PageBlueprint("release_check", __name__, url_prefix="/help/releases/check")
release_feeds = ApiClientBlueprint(
    "release_feeds", __name__, url_prefix="/help", errors=ErrorFormat.API
)
_ATOM_TYPE, _ICALENDAR_TYPE = "application/atom+xml", "text/calendar"
#: Filters that the page and the feeds support.
_FILTER_PARAMETERS = ("release", "interface", "state")


@release_schedule.get("")
@open_to_anyone
def index() -> ResponseReturnValue:
    """List the changes by release, filtered by the form."""
    get_list_query(*_FILTER_PARAMETERS, "used_by")
    form = ReleaseFilterForm()
    if form.used_by.data and not _is_signed_in():
        return redirect_to_sign_in()
    is_valid, used = form.validate(), _find_viewer_changes()
    listed = list_displayed_changes(form.build_filter()) if is_valid else ()
    if form.used_by.data:
        listed = [each for each in listed if each.change.id in used]
    page = render_template(
        "help/releases.html",
        form=form,
        releases=_group_by_release(listed, used),
        running=get_running_release(),
        announced=len(list_displayed_changes(ChangeFilter(state=ReleaseChangeState.ANNOUNCED))),
        used=used,
        is_signed_in=_is_signed_in(),
        given={name: request.args[name] for name in _FILTER_PARAMETERS if request.args.get(name)},
    )
    return page, 200 if is_valid else 400


@release_schedule.get("/<change_id>")
@open_to_anyone
def show(change_id: str) -> ResponseReturnValue:
    """Show a change, with instructions for testing the behavior before and after the change."""
    change = CHANGES_BY_ID.get(change_id)
    if change is None:
        raise NotFoundError("This change is not on the release schedule.")
    return render_template(
        "help/release_change.html",
        listed=build_listed_change(change),
        change=change,
        effect=describe_effect(change),
        example=build_example_request(change),
        running=get_running_release(),
        used=_find_viewer_changes().get(change.id),
        base_url=get_settings().base_url,
    )


def _is_signed_in() -> bool:
    return get_request_viewer().user_id is not None


def _find_viewer_changes() -> Mapping[str, AffectedCallCount]:
    """Return the changes that affect the viewer's tokens and applications, keyed by change ID."""
    if not _is_signed_in():
        return {}
    moment = get_current_time()
    period = build_full_usage_period(get_settings(), moment)
    return find_affected_call_counts(get_request_viewer(), period, session=db.session(), now=moment)


def _group_by_release(
    listed_changes: Sequence[ListedChange], used: Mapping[str, AffectedCallCount]
) -> Sequence[tuple[Release, date | None, Sequence[ListedChange]]]:
    """Group the changes by release, newest first, with the date of each release.

    In each release, the changes that affect the most calls by the viewer come first.
    """
    ranked = sorted(
        listed_changes,
        key=lambda each: used[each.change.id].calls if each.change.id in used else -1,
        reverse=True,
    )
    return [
        (release, find_release_date(release), members)
        for release in reversed(list_scheduled_releases())
        if (members := [each for each in ranked if each.change.effective_release == release])
    ]


@release_check.get("", endpoint="show")
@open_to_anyone
def show_check() -> ResponseReturnValue:
    """Show the form for the release checker."""
    return _render_check_page(ReleaseCheckForm())


@release_check.post("", endpoint="create")
@open_to_anyone.with_changes(writes=False, is_heavy=True)
@csrf.exempt  # type: ignore[untyped-decorator]
def check() -> ResponseReturnValue:
    """Check the submitted content, and show the calls that a release breaks.

    The check changes nothing, so forms on other sites may submit content without a CSRF token.
    """
    count_rate_limited_request(RateLimitGroup.RELEASE_CHECKS)
    try:
        given = read_check_parameters()
    except InvalidError as error:
        return _render_rejected_check(ReleaseCheckForm(), error)
    form = ReleaseCheckForm(given)
    if not form.validate():
        return _render_check_page(form), 400
    try:
        report = run_release_check(
            form.submitted_name,
            form.submitted_text,
            form.selected_release,
            is_anonymous=not _is_signed_in(),
        )
    except InvalidError as error:
        return _render_rejected_check(form, error)
    return _render_check_page(form, report)


def _render_rejected_check(form: ReleaseCheckForm, error: InvalidError) -> ResponseReturnValue:
    form.add_error(error.field, str(error))
    return _render_check_page(form), 400


def _render_check_page(form: ReleaseCheckForm, report: CheckReport | None = None) -> str:
    form.content.data = ""  # The content may contain secrets, so it is not sent back.
    return render_template(
        "help/release_check.html",
        form=form,
        report=report,
        limit=get_settings().release_check_limit_bytes,
    )


_describe_feed = partial(
    ViewDescription, tag=METADATA, query=ReleaseFilterQuery, errors=(400,), is_conditional=True
)


@release_feeds.get("/releases.atom")
@_describe_feed(name="release_schedule.atom", content_type=_ATOM_TYPE)
@open_to_anyone.with_changes(cross_origin=CorsPolicy())
def atom() -> Response:
    """Return the release schedule as an Atom feed."""
    return build_cacheable_response(
        build_atom_feed(_list_filtered_changes(), url=_build_feed_url()),
        f"{_ATOM_TYPE}; charset=utf-8",
    )


@release_feeds.get("/releases.ics")
@_describe_feed(name="release_schedule.calendar", content_type=_ICALENDAR_TYPE)
@open_to_anyone.with_changes(cross_origin=CorsPolicy())
def ics() -> Response:
    """Return a calendar of the releases that have a date."""
    return build_cacheable_response(
        build_release_calendar(_list_filtered_changes(), url=_build_feed_url()),
        f"{_ICALENDAR_TYPE}; charset=utf-8",
    )


def _list_filtered_changes() -> list[ListedChange]:
    query = validate_query(ReleaseFilterQuery, dict(request.args.lists()))
    return [*list_displayed_changes(query.change_filter)]


def _build_feed_url() -> str:
    """Return the canonical URL of this feed with its filters."""
    url = build_public_url(url_for(request.endpoint or ""))
    given = sorted((name, value) for name, value in request.args.items() if value)
    return f"{url}?{urlencode(given)}" if given else url
