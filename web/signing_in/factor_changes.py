"""What follows when somebody has a new factor."""

from flask import flash, redirect, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.signing_in.sessions import close_other_sign_ins
from domain.audit.events import Event, EventKind
from web.extensions import db
from web.http.access import visitor
from web.http.audit import note
from web.signing_in.recovery_sheet import put_on_sheet


def welcome_factor(name: str, *, is_first: bool) -> ResponseReturnValue:
    """Say what it is good for; with the first one come recovery codes.

    From the first one on a password alone opens nothing: browsers that it opened are signed out.
    """
    user_id = visitor().id
    note(Event(kind=EventKind.SECOND_FACTOR_ADDED, user_id=user_id, subject=name))
    if not is_first:
        flash(f"The {name} is ready: use it when you sign in.")
        return redirect(url_for("account.security"))
    close_other_sign_ins(user_id, but=visitor().sign_in_id, session=db.session())
    put_on_sheet()
    return redirect(url_for("second_factors.show_recovery_codes"))
