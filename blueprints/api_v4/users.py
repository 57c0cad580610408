"""/api/v4/user, the user of a token, and /api/v4/users: export and erasure of personal data."""

from http import HTTPStatus

from flask import Blueprint, Response

from domain.accounts.administration import get_account
from domain.accounts.users import get_user
from domain.errors import ForbiddenError, NotFoundError
from domain.oauth.presented_tokens.bearer import Bearer
from web.access.marks import bearer as with_bearer
from web.admin.personal_data import erase, exported
from web.api import parameters as read
from web.extensions import db
from web.http.json_responses import json_response
from web.services import settings

users = Blueprint("users", __name__)


@users.get("/user")
@with_bearer("api", "read_api", "read", "read_user")
def current(bearer: Bearer) -> Response:
    """Return the user of the token."""
    return json_response(bearer.profile.as_json(settings().base_url))


@users.get("/users/<int:user_id>/export")
@with_bearer("api", "read_api", "read").but(writes=True)  # an audit event
def export(bearer: Bearer, user_id: int) -> Response:
    """Export the personal data of the caller, or of any user for administrators."""
    if user_id != bearer.user_id and not bearer.is_admin:
        message = "There is no such user."
        raise NotFoundError(message)
    answer = json_response(exported(get_account(user_id, session=db.session())))
    answer.headers["Cache-Control"] = "no-store"
    return answer


@users.delete("/users/<int:user_id>")
@with_bearer("api")
def delete(bearer: Bearer, user_id: int) -> Response:
    """Erase a person; administrators only."""
    if not bearer.is_admin:
        message = "Only administrators delete users."
        raise ForbiddenError(message)
    session, given = db.session(), read.all_parameters()
    heir = read.text(given, "applications_to")
    erase(
        get_account(user_id, session=session),
        by=bearer.user_id,
        heir=get_user(heir, session=session) if heir else None,
        may_delete_applications=read.yes_or_no(given, "delete_applications") or False,
    )
    return Response(status=HTTPStatus.NO_CONTENT)
