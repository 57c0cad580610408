"""/api/v4/user, the user of a token, and /api/v4/users."""

from flask import Blueprint, Response

from domain.accounts.administration import get_account
from domain.accounts.users import get_user
from domain.errors import NotFoundError
from domain.oauth.presented_tokens.bearer import Bearer
from web.access.api_limits import Family
from web.admin.personal_data import erase, exported
from web.api.operations import operation, ready_operation
from web.api.schemas.users import CurrentUser, ErasureBody, PersonalData
from web.extensions import db
from web.http.json_responses import json_response
from web.services import settings

users = Blueprint("users", __name__)


@users.get("/user")
@ready_operation("users.current", returns=CurrentUser)
def current(bearer: Bearer) -> Response:
    """Show the user of the token."""
    return json_response(bearer.profile.as_json(settings().base_url))


@users.get("/users/<int:user_id>/export")
@operation("users.export", returns=PersonalData, limit=Family.USER).but(
    writes=True
)  # an audit event
def export(bearer: Bearer, user_id: int) -> Response:
    """Export the personal data of the caller, or of any user for administrators."""
    if user_id != bearer.user_id and not bearer.is_admin:
        message = "There is no such user."
        raise NotFoundError(message)
    answer = json_response(exported(get_account(user_id, session=db.session())))
    answer.headers["Cache-Control"] = "no-store"
    return answer


@users.delete("/users/<int:user_id>")
@operation("users.delete", body=ErasureBody)
def delete(bearer: Bearer, user_id: int, body: ErasureBody) -> None:
    """Erase a person; what others need of their work stays under a pseudonym."""
    session = db.session()
    heir = body.applications_to
    erase(
        get_account(user_id, session=session),
        by=bearer.user_id,
        heir=get_user(heir, session=session) if heir else None,
        may_delete_applications=body.delete_applications,
    )
