"""Hands out and erases personal data, and writes down who did so: for pages, API and commands."""

from typing import Any

import orjson
from flask import Response

from domain.audit.events import Event, EventKind
from domain.audit.seals import audit_key
from domain.errors import InvalidError
from domain.personal_data.erasure import Erased, PersonRow, count_applications, erase_person
from domain.personal_data.export import export_person
from web.extensions import db
from web.http.audit import note
from web.server.bootstrap import forget_first_password
from web.services import now, services


def exported(user: PersonRow) -> dict[str, Any]:
    """Return all that is kept of a person, without any secret."""
    note(Event(kind=EventKind.USER_EXPORTED, user_id=user.id, subject=user.username))
    return export_person(user, session=db.session(), now=now())


def export_file(user: PersonRow) -> Response:
    """Return the same as a file to keep."""
    text = orjson.dumps(exported(user), option=orjson.OPT_INDENT_2)
    answer = Response(text, mimetype="application/json")
    answer.headers["Content-Disposition"] = 'attachment; filename="personal-data.json"'
    answer.headers["Cache-Control"] = "no-store"
    return answer


def erase(
    user: PersonRow, *, by: int | None, heir: PersonRow | None, may_delete_applications: bool
) -> Erased:
    """Erase a person; see `erase_person`.

    Raises InvalidError where there are applications and nobody said what becomes of them.
    """
    session, moment = db.session(), now()
    if heir is None and not may_delete_applications and count_applications(user, session=session):
        message = "Say who takes over their applications, or that they are deleted as well."
        raise InvalidError(message, field="heir")
    key = audit_key(session=session, keyring=services().keyring, now=moment)
    forget_first_password(user.username)
    done = erase_person(user, by=by, heir=heir, session=session, audit_key=key)
    details = {
        "applications_handed_on": done.applications_handed_on,
        "applications_deleted": done.applications_deleted,
    }
    note(Event(kind=EventKind.USER_ERASED, subject=done.pseudonym, details=details))
    return done
