"""The download of personal data, for people and for administrators."""

import orjson
from flask import Response

from domain.accounts.lifecycle import actions
from web.http.work import work


def export_file(user_id: int) -> Response:
    """Return the stored data of a person as a file, without any secret."""
    exported = actions.export_user(work(), user_id).model_dump()
    text = orjson.dumps(exported, option=orjson.OPT_INDENT_2)
    answer = Response(text, mimetype="application/json")
    answer.headers["Content-Disposition"] = 'attachment; filename="personal-data.json"'
    answer.headers["Cache-Control"] = "no-store"
    return answer
