"""The links that confirm e-mail addresses, and the addresses that wait for one.

Programs that look at messages follow links, so only the form's POST confirms. It has to be signed
in as the user of the link: somebody who gets a stranger's link cannot lend them the address.
"""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts import email_addresses as domain
from domain.audit.events import Event, EventKind
from domain.errors import TooManyAttemptsError
from web.access.marks import get_current_user, signed_in
from web.extensions import db
from web.http.audit_events import record_event
from web.http.endpoints import PageBlueprint
from web.services import letterhead, now, services, sign_in_limits

email_confirmations = PageBlueprint("email_confirmations", __name__)
#: Neither the browser nor anything in between keeps the page.
_NOT_KEPT = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}
_WAITING = "/-/user_settings/profile/email"


@email_confirmations.get("/-/email_confirmations/<token>")
@signed_in
def show(token: str) -> ResponseReturnValue:
    """Show the address of a link, and ask."""
    waiting = domain.get_waiting(
        token,
        get_current_user().id,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    page = render_template("account/email_confirmation.html", waiting=waiting, token=token)
    return page, 200, _NOT_KEPT


@email_confirmations.post("/-/email_confirmations/<token>")
@signed_in
def confirm(token: str) -> ResponseReturnValue:
    """Confirm the address of a link."""
    user = get_current_user()
    done = domain.confirm(token, user.id, letterhead(), session=db.session(), now=now())
    _record(EventKind.EMAIL_CONFIRMED, {"changed": "e-mail address"} if done.is_new else None)
    flash(f"{done.email} is confirmed.")
    return redirect(url_for("account.profile"))


@email_confirmations.post(f"{_WAITING}/send_link")
@signed_in
def send_link() -> ResponseReturnValue:
    """Send a new link to the address that waits, or to that of the account."""
    user = get_current_user()
    try:
        domain.send_link(
            user.id,
            letterhead(),
            requests=sign_in_limits().email_limit(user.id),
            session=db.session(),
            now=now(),
        )
    except TooManyAttemptsError as error:
        flash(str(error), "error")
    else:
        flash("A new link is on its way. Earlier ones do not work any more.")
    return redirect(url_for("account.profile"))


@email_confirmations.post(f"{_WAITING}/cancel")
@signed_in
def cancel() -> ResponseReturnValue:
    """Keep the present address: the new one does not wait any more."""
    if domain.forget_waiting(get_current_user().id, session=db.session()):
        flash("Your e-mail address stays as it is.")
    return redirect(url_for("account.profile"))


def _record(kind: EventKind, details: dict[str, object] | None) -> None:
    user = get_current_user()
    record_event(Event(kind=kind, user_id=user.id, subject=user.username, details=details))
