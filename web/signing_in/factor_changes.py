"""Completes the addition of a second factor."""

from flask import flash, redirect, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.signing_in.sessions import close_other_sign_ins
from domain.audit.events import Event, EventKind
from web.access.marks import get_current_user
from web.extensions import db
from web.http.audit_events import record_event
from web.signing_in.completion import renew_this_sign_in
from web.signing_in.issued_recovery_codes import issue_recovery_codes


def finish_adding_factor(name: str, *, is_first: bool) -> ResponseReturnValue:
    """Record a new second factor, confirm it, and issue recovery codes with the first one.

    The first one also signs out all other browsers, which had used the password alone.
    """
    user_id = get_current_user().id
    renew_this_sign_in()
    record_event(Event(kind=EventKind.SECOND_FACTOR_ADDED, user_id=user_id, subject=name))
    if not is_first:
        flash(f"The {name} is ready: use it when you sign in.")
        return redirect(url_for("account.security"))
    close_other_sign_ins(user_id, but=get_current_user().sign_in_id, session=db.session())
    issue_recovery_codes()
    return redirect(url_for("second_factors.show_recovery_codes"))
