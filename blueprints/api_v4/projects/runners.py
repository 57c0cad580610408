"""/api/v4/runners: the registration of runners by tokens, which later releases remove.

This service has no runners: before their release these operations are not found, and announced.
"""

from http import HTTPStatus

from flask import Blueprint

from domain.errors import NotFoundError
from web.api.description.described import refuses_with
from web.api.operations import operation

runners = Blueprint("runners", __name__)


@runners.post("/runners")
@refuses_with(HTTPStatus.NOT_FOUND)
@operation("runners.register", status=HTTPStatus.GONE)
def register() -> None:
    """Register a runner; from release 17.0 on, registration tokens and arguments are gone."""
    raise _no_runners()


@runners.post("/runners/reset_registration_token")
@refuses_with(HTTPStatus.NOT_FOUND)
@operation("runners.reset_token", status=HTTPStatus.GONE)
def reset_token() -> None:
    """Reset the registration token of the instance; gone from release 18.0 on."""
    raise _no_runners()


@runners.post("/projects/<string:reference>/runners/reset_registration_token")
@refuses_with(HTTPStatus.NOT_FOUND)
@operation("runners.reset_project_token", status=HTTPStatus.GONE)
def reset_project_token() -> None:
    """Reset the registration token of a project; gone from release 18.0 on."""
    raise _no_runners()


@runners.post("/groups/<string:reference>/runners/reset_registration_token")
@refuses_with(HTTPStatus.NOT_FOUND)
@operation("runners.reset_group_token", status=HTTPStatus.GONE)
def reset_group_token() -> None:
    """Reset the registration token of a group; gone from release 18.0 on."""
    raise _no_runners()


def _no_runners() -> NotFoundError:
    return NotFoundError("This service has no runners.")
