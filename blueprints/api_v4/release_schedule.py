"""/api/v4/releases: the release schedule, the release checker, and usage of affected calls."""

from flask import Blueprint, after_this_request, g

from domain.core.errors import ForbiddenError
from domain.core.types.base import Found
from domain.oauth.presented_tokens.bearer import Bearer
from domain.projects.views import Viewer
from domain.releases.usage.reading import uses_of_instance, uses_of_person
from web.access.api_limits import Family
from web.api.description.described import refuses_with
from web.api.operations import operation
from web.api.release_checks import handed_in, run_check
from web.api.schemas.releases import (
    ReleaseChange,
    ReleaseChangeQuery,
    ReleaseCheck,
    ReleaseCheckBody,
    UsageQuery,
    UsageResource,
)
from web.extensions import db
from web.releases.feeds import let_everybody_cache
from web.releases.rehearsal import whole_period
from web.releases.schedule_view import list_shown
from web.services import now, settings

release_changes = Blueprint("release_changes", __name__, url_prefix="/releases/changes")
release_checks = Blueprint("release_checks", __name__, url_prefix="/releases/check")
api_usage = Blueprint("api_usage", __name__, url_prefix="/releases/usage")


@release_changes.get("", endpoint="index")
@operation("release_changes.index", query=ReleaseChangeQuery, returns=ReleaseChange)
def list_changes(query: ReleaseChangeQuery, bearer: Bearer | None) -> Found[ReleaseChange]:
    """List the announced API changes by release."""
    if bearer is None:
        after_this_request(let_everybody_cache)
    listed = list_shown(query.wanted)
    return Found(
        items=[ReleaseChange.of(each) for each in listed[query.offset :][: query.size]],
        total=len(listed),
    )


@release_checks.post("")
@refuses_with(415)
@(
    operation(
        "release_checks.create",
        body=ReleaseCheckBody,
        returns=ReleaseCheck,
        limit=Family.RELEASE_CHECKS,
    )
    .reading(handed_in)
    .but(writes=False, is_heavy=True)
)
def create(body: ReleaseCheckBody) -> ReleaseCheck:
    """Check what a release breaks in a configuration or script.

    The content is neither stored nor returned.
    """
    is_anonymous = g.get("limited_user_id") is None
    report = run_check(body.name, body.content, body.target, is_anonymous=is_anonymous)
    return ReleaseCheck.of(report, body.target)


@api_usage.get("", endpoint="index")
@operation("api_usage.index", query=UsageQuery, returns=UsageResource)
def list_usage(query: UsageQuery, viewer: Viewer) -> Found[UsageResource]:
    """List the API calls that scheduled changes affect.

    The list contains the calls of the caller's tokens and applications. For administrators,
    `scope=all` lists the calls of the whole instance.
    """
    moment, session = now(), db.session()
    period = whole_period(settings(), moment)
    if query.scope == "mine":
        found = uses_of_person(viewer, period, session=session, now=moment)
    elif viewer.is_admin:
        found = uses_of_instance(period, session=session, now=moment)
    else:
        message = "Only administrators can list the calls of the whole instance."
        raise ForbiddenError(message)
    shown = found[query.offset : query.offset + query.size]
    return Found(items=[UsageResource.of(each) for each in shown], total=len(found))
