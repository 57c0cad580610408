"""Pages that confirm email addresses and manage unconfirmed addresses.

Mail scanners follow links, so only the form's POST confirms an address. The user must be signed in
to the account of the link. Otherwise, a person who receives another user's link could confirm an
address for that user.
"""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts import email_addresses as domain
from domain.core.errors import TooManyAttemptsError
from web.access.decorators import get_current_user, signed_in
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.form_errors import refusals_shown
from web.sealing.sealer import NOT_KEPT
from web.services import now, services

email_confirmations = PageBlueprint("email_confirmations", __name__)
_WAITING = "/-/user_settings/profile/email"


@email_confirmations.get("/-/email_confirmations/<token>")
@signed_in
def show(token: str) -> ResponseReturnValue:
    """Show the address of a link, with a button to confirm it."""
    waiting = domain.get_waiting(
        token,
        get_current_user().id,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    page = render_template("account/email_confirmation.html", waiting=waiting, token=token)
    return page, 200, NOT_KEPT


@email_confirmations.post("/-/email_confirmations/<token>")
@signed_in
def confirm(token: str) -> ResponseReturnValue:
    """Confirm the address of a link."""
    flash(f"Email address {domain.confirm(work(), token).email} confirmed.")
    return redirect(url_for("account.profile"))


@email_confirmations.post(f"{_WAITING}/send_link")
@signed_in
def send_link() -> ResponseReturnValue:
    """Send a new link to the unconfirmed address, or to the account's own address."""
    with refusals_shown(TooManyAttemptsError):
        domain.send_link(work())
        flash("A new link was sent. Earlier links no longer work.")
    return redirect(url_for("account.profile"))


@email_confirmations.post(f"{_WAITING}/cancel")
@signed_in
def cancel() -> ResponseReturnValue:
    """Keep the current address and discard the unconfirmed one."""
    if domain.keep_address(work()):
        flash("Your email address was not changed.")
    return redirect(url_for("account.profile"))
