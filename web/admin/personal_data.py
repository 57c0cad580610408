"""Download of personal data, for users and for administrators."""

import orjson
from flask import Response

from domain.accounts.lifecycle import actions
from web.http.unit_of_work import get_unit_of_work


def build_personal_data_response(user_id: int) -> Response:
    """Return a file with all stored data of a user except secrets."""
    exported = actions.export_user(get_unit_of_work(), user_id).model_dump()
    text = orjson.dumps(exported, option=orjson.OPT_INDENT_2)
    answer = Response(text, mimetype="application/json")
    answer.headers["Content-Disposition"] = 'attachment; filename="personal-data.json"'
    answer.headers["Cache-Control"] = "no-store"
    return answer
