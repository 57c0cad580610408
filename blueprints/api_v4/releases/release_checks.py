"""/api/v4/releases/check: the release checker for programs."""

from flask import Blueprint

from web.access.api_limits import Family
from web.api.description.described import refuses_with
from web.api.operations import operation
from web.api.release_checks import handed_in, run_check
from web.api.schemas.releases.release_checks import ReleaseCheck, ReleaseCheckBody

release_checks = Blueprint("release_checks", __name__, url_prefix="/releases/check")


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
    .but(writes=False)
)
def create(body: ReleaseCheckBody) -> ReleaseCheck:
    """Check what breaks in a release.

    The content is not stored, and not part of the response.
    """
    report = run_check(body.name, body.content, body.target)
    return ReleaseCheck.of(report, body.target)
