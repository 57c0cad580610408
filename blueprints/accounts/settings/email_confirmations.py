"""Pages that confirm email addresses and manage unconfirmed addresses.

Mail scanners follow links, so an address is confirmed only when the form is submitted. The user
must be signed in to the account for which the link was created. Otherwise, a person who receives
another user's link could confirm an address for that user.
"""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts import email_addresses as domain
from domain.core.errors import TooManyAttemptsError
from web.access.decorators import get_current_user, sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_errors import show_errors_on_next_page
from web.sealing.sealed_values import SECRET_URL_HEADERS
from web.services import get_current_time, get_services

email_confirmations = PageBlueprint("email_confirmations", __name__)
_UNCONFIRMED_ADDRESS_URL = "/-/user_settings/profile/email"


@email_confirmations.get("/-/email_confirmations/<token>")
@sign_in_required
def show(token: str) -> ResponseReturnValue:
    """Show the email address that a confirmation link contains, with a button to confirm it."""
    waiting = domain.get_unconfirmed_address(
        token,
        get_current_user().id,
        session=db.session(),
        keyring=get_services().keyring,
        now=get_current_time(),
    )
    page = render_template("account/email_confirmation.html", waiting=waiting, token=token)
    return page, 200, SECRET_URL_HEADERS


@email_confirmations.post("/-/email_confirmations/<token>")
@sign_in_required
def confirm(token: str) -> ResponseReturnValue:
    """Confirm the email address that a confirmation link contains."""
    confirmed = domain.confirm_address_by_link(get_unit_of_work(), token)
    flash(f"Email address {confirmed.email} confirmed.")
    return redirect(url_for("account.profile"))


@email_confirmations.post(f"{_UNCONFIRMED_ADDRESS_URL}/send_link")
@sign_in_required
def send_link() -> ResponseReturnValue:
    """Send a new confirmation link to the user's unconfirmed email address."""
    with show_errors_on_next_page(TooManyAttemptsError):
        domain.send_address_link(get_unit_of_work())
        flash("A new link was sent. Earlier links no longer work.")
    return redirect(url_for("account.profile"))


@email_confirmations.post(f"{_UNCONFIRMED_ADDRESS_URL}/cancel")
@sign_in_required
def cancel() -> ResponseReturnValue:
    """Discard the unconfirmed address and keep the current address."""
    if domain.discard_unconfirmed_address(get_unit_of_work()):
        flash("Your email address was not changed.")
    return redirect(url_for("account.profile"))
