"""/api/v4/releases: the release schedule, the release checker, and usage of affected calls."""

from flask import Blueprint, after_this_request, g

from domain.core.errors import ForbiddenError
from domain.core.types.pagination import ListPage
from domain.oauth.token_authentication.bearer import Bearer
from domain.projects.views import Viewer
from domain.releases.usage.usage_reports import find_instance_usage, find_user_usage
from web.access.api_limits import RateLimitGroup
from web.api.openapi.view_descriptions import declare_error_statuses
from web.api.operations import declare_operation
from web.api.release_checks import read_check_parameters, run_release_check
from web.api.schemas.releases import (
    ReleaseChange,
    ReleaseChangeQuery,
    ReleaseCheck,
    ReleaseCheckBody,
    UsageQuery,
    UsageResource,
)
from web.extensions import db
from web.releases.feeds import allow_public_caching
from web.releases.rehearsal import build_full_usage_period
from web.releases.schedule_view import list_displayed_changes
from web.services import get_current_time, get_settings

release_changes = Blueprint("release_changes", __name__, url_prefix="/releases/changes")
release_checks = Blueprint("release_checks", __name__, url_prefix="/releases/check")
api_usage = Blueprint("api_usage", __name__, url_prefix="/releases/usage")


@release_changes.get("", endpoint="index")
@declare_operation("release_changes.index", query=ReleaseChangeQuery, returns=ReleaseChange)
def list_changes(query: ReleaseChangeQuery, bearer: Bearer | None) -> ListPage[ReleaseChange]:
    """List the announced API changes by release."""
    if bearer is None:
        after_this_request(allow_public_caching)
    listed = list_displayed_changes(query.change_filter)
    return ListPage(
        items=[
            ReleaseChange.from_listed_change(each)
            for each in listed[query.offset :][: query.page_size]
        ],
        total=len(listed),
    )


@release_checks.post("")
@declare_error_statuses(415)
@(
    declare_operation(
        "release_checks.create",
        body=ReleaseCheckBody,
        returns=ReleaseCheck,
        limit=RateLimitGroup.RELEASE_CHECKS,
    )
    .with_body_reader(read_check_parameters)
    .with_changes(writes=False, is_heavy=True)
)
def create(body: ReleaseCheckBody) -> ReleaseCheck:
    """Check what a release breaks in a configuration or script.

    The content is neither stored nor returned.
    """
    is_anonymous = g.get("limited_user_id") is None
    report = run_release_check(
        body.name, body.content, body.target_release, is_anonymous=is_anonymous
    )
    return ReleaseCheck.from_report(report, body.target_release)


@api_usage.get("", endpoint="index")
@declare_operation("api_usage.index", query=UsageQuery, returns=UsageResource)
def list_usage(query: UsageQuery, viewer: Viewer) -> ListPage[UsageResource]:
    """List the API calls that scheduled changes affect.

    The list contains the calls of the caller's tokens and applications. For administrators,
    `scope=all` lists the calls of the whole instance.
    """
    moment, session = get_current_time(), db.session()
    period = build_full_usage_period(get_settings(), moment)
    if query.scope == "mine":
        found = find_user_usage(viewer, period, session=session, now=moment)
    elif viewer.is_admin:
        found = find_instance_usage(period, session=session, now=moment)
    else:
        message = "Only administrators can list the calls of the whole instance."
        raise ForbiddenError(message)
    shown = found[query.offset : query.offset + query.page_size]
    return ListPage(items=[UsageResource.from_usage(each) for each in shown], total=len(found))
