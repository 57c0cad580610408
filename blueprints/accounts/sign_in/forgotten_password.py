"""Pages for requesting a password reset link, and for setting a new password with the link.

Mail scanners follow links, so the password is changed only when the form is submitted.
"""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.accounts.sign_in.attempts import get_requested_page
from domain.accounts.lifecycle import password_reset
from domain.accounts.lifecycle.own_account import find_granted_access
from domain.accounts.types import PasswordBody
from domain.accounts.users import UserView
from domain.core.errors import NotFoundError, TooManyAttemptsError
from forms.account import NewPasswordForm
from forms.sign_in import ForgottenPasswordForm
from web.access.decorators import open_to_anyone
from web.http.endpoints import PageBlueprint
from web.http.outdated_forms import redirect_outdated_form, redirect_to_form_page
from web.http.unit_of_work import get_unit_of_work
from web.sealing.sealed_values import SECRET_URL_HEADERS, BrokenSealError, unseal_text
from web.services import get_settings

forgotten_password = PageBlueprint("forgotten_password", __name__, url_prefix="/users/password")

_LINK_SENT_MESSAGE = (
    "If this account exists, a link was sent to its email address. The link is valid for one hour."
)


@forgotten_password.get("/new")
@open_to_anyone
def ask() -> ResponseReturnValue:
    """Show the form for requesting a password reset link."""
    return _render_request_form(ForgottenPasswordForm(formdata=None))


@forgotten_password.post("/new")
@open_to_anyone
@redirect_outdated_form(redirect_to_form_page)
def send_link() -> ResponseReturnValue:
    """Send a password reset link if the account exists.

    The response is the same whether or not the account exists.
    """
    form = ForgottenPasswordForm()
    if not form.validate_on_submit():
        return _render_request_form(form), 422
    try:
        password_reset.send_reset_link(get_unit_of_work(), form.login.data or "")
    except TooManyAttemptsError as error:
        form.add_error("login", str(error))
        return _render_request_form(form), 429, {"Retry-After": str(error.retry_after)}
    flash(_LINK_SENT_MESSAGE)
    return redirect(url_for("sessions.sign_in", next=get_requested_page() or None))


@forgotten_password.get("/<sealed>")
@open_to_anyone
def choose(sealed: str) -> ResponseReturnValue:
    """Show the form for the new password."""
    try:
        account = password_reset.get_account_for_reset_link(
            get_unit_of_work(), *_unseal_link(sealed)
        )
    except NotFoundError as error:
        return _redirect_to_request_form(error)
    return _render_password_form(NewPasswordForm(formdata=None), sealed, account)


@forgotten_password.post("/<sealed>")
@open_to_anyone
@redirect_outdated_form(redirect_to_form_page)
def set_password(sealed: str) -> ResponseReturnValue:
    """Set the new password and redirect to the sign-in page."""
    form = NewPasswordForm()
    try:
        account = password_reset.get_account_for_reset_link(
            get_unit_of_work(), *_unseal_link(sealed)
        )
        is_done = form.run_if_valid(lambda: _set_password(sealed, form))
    except NotFoundError as error:
        return _redirect_to_request_form(error)
    if not is_done:
        return _render_password_form(form, sealed, account)
    flash(f"Password of @{account.username} changed. Sign in with your new password.")
    return redirect(url_for("sessions.sign_in"))


def _set_password(sealed_text: str, form: NewPasswordForm) -> bool:
    password_reset.set_password_by_link(
        get_unit_of_work(), *_unseal_link(sealed_text), form.build_entered_body(PasswordBody)
    )
    return True


def _unseal_link(sealed_text: str) -> tuple[int, str]:
    """Return the user ID and the account digest from a password reset link.

    Raise NotFoundError if the link is expired or incomplete.
    """
    try:
        user_id, stamp = unseal_text(
            sealed_text,
            purpose=password_reset.RESET_LINK_PURPOSE,
            lifetime=password_reset.RESET_LINK_LIFETIME,
        )
    except BrokenSealError as error:
        message = "This link has expired or is incomplete. Request a new one."
        raise NotFoundError(message) from error
    return int(user_id), str(stamp)


def _redirect_to_request_form(error: NotFoundError) -> ResponseReturnValue:
    flash(str(error), "warning")
    return redirect(url_for("forgotten_password.ask"))


def _render_request_form(form: ForgottenPasswordForm) -> str:
    return render_template(
        "sessions/forgotten_password.html", form=form, sends_mail=bool(get_settings().mail_url)
    )


def _render_password_form(
    form: NewPasswordForm, sealed_text: str, account: UserView
) -> ResponseReturnValue:
    page = render_template(
        "sessions/new_password.html",
        form=form,
        sealed=sealed_text,
        account=account,
        minimum=get_settings().password_min_length,
        **find_granted_access(get_unit_of_work(), account.id),
    )
    return page, 422 if form.errors else 200, SECRET_URL_HEADERS
