"""Exports and erases personal data with an audit event, for pages, API and commands."""

from typing import Any

import orjson
from flask import Response

from domain.accounts.users import UserView
from domain.audit.events import Event, EventKind
from domain.audit.seals import audit_key
from domain.errors import InvalidError
from domain.personal_data.erasure import Erased, count_applications, erase_person
from domain.personal_data.export import export_person
from web.extensions import db
from web.http.audit_events import record_event
from web.server.bootstrap import forget_first_password
from web.services import now, services


def exported(user: UserView) -> dict[str, Any]:
    """Return all stored data of a person, without any secret."""
    record_event(Event(kind=EventKind.USER_EXPORTED, user_id=user.id, subject=user.username))
    return export_person(user, session=db.session(), now=now())


def export_file(user: UserView) -> Response:
    """Return the export as a file download."""
    text = orjson.dumps(exported(user), option=orjson.OPT_INDENT_2)
    answer = Response(text, mimetype="application/json")
    answer.headers["Content-Disposition"] = 'attachment; filename="personal-data.json"'
    answer.headers["Cache-Control"] = "no-store"
    return answer


def erase(
    user: UserView, *, by: int | None, heir: UserView | None, may_delete_applications: bool
) -> Erased:
    """Erase a person and record it; see `erase_person`.

    Raises InvalidError if the person has applications and their fate was not chosen.
    """
    session, moment = db.session(), now()
    if heir is None and not may_delete_applications and count_applications(user, session=session):
        message = "Choose whether to transfer or delete their applications."
        raise InvalidError(message, field="heir")
    key = audit_key(session=session, keyring=services().keyring, now=moment)
    forget_first_password(user.username)
    done = erase_person(user, by=by, heir=heir, session=session, audit_key=key)
    details = {
        "applications_handed_on": done.applications_handed_on,
        "applications_deleted": done.applications_deleted,
    }
    record_event(Event(kind=EventKind.USER_ERASED, subject=done.pseudonym, details=details))
    return done
