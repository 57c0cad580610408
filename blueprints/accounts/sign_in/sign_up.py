"""Pages for requesting a sign-up link, and for creating an account with the link.

Mail scanners follow links, so an account is created only when the form is submitted.
"""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.accounts.sign_in.attempts import (
    create_sign_in_and_redirect,
    get_requested_page,
    get_return_url,
    remember_return_url,
)
from domain.accounts.lifecycle import sign_up as domain
from domain.accounts.sign_in.sessions import PASSWORD_METHODS, Authentication
from domain.accounts.sign_up import SIGN_UP_LINK_LIFETIME
from domain.accounts.types import OwnAccountBody
from domain.accounts.users import ACTIVE, UserView
from domain.core.errors import NotFoundError, TooManyAttemptsError
from forms.account import NewAccountForm
from forms.sign_in import SignUpForm
from web.access.decorators import open_to_anyone
from web.http.endpoints import PageBlueprint
from web.http.outdated_forms import redirect_outdated_form, redirect_to_form_page
from web.http.unit_of_work import get_unit_of_work
from web.sealing.sealed_values import SECRET_URL_HEADERS, BrokenSealError, unseal_text
from web.services import get_settings

sign_up = PageBlueprint(
    "sign_up", __name__, url_prefix="/users/sign_up", leads_to_applications=True
)

_LINK_SENT_MESSAGE = "Check your email: a link was sent to {}. The link is valid for one day."
_PENDING_APPROVAL_MESSAGE = (
    "Your account was created and has to be approved by an administrator. You get an email when it "
    "is approved."
)


@sign_up.get("")
@open_to_anyone
def ask() -> ResponseReturnValue:
    """Show the form for requesting a sign-up link."""
    return _render_email_form(SignUpForm(formdata=None))


@sign_up.post("")
@open_to_anyone
@redirect_outdated_form(redirect_to_form_page)
def send_link() -> ResponseReturnValue:
    """Send a sign-up link to an email address.

    The response is the same whether or not the address has an account.
    """
    form, email = SignUpForm(), ""
    try:
        email = form.run_if_valid(lambda: _send_link(form)) or ""
    except TooManyAttemptsError as error:
        form.add_error("email", str(error))
        return _render_email_form(form), 429, {"Retry-After": str(error.retry_after)}
    if not email:
        return _render_email_form(form), 422
    wanted = get_requested_page()
    remember_return_url(wanted)  # Only the browser that requested the link continues to this page.
    flash(_LINK_SENT_MESSAGE.format(email))
    return redirect(url_for("sessions.sign_in", next=wanted or None))


def _send_link(form: SignUpForm) -> str:
    email = form.email.data or ""
    domain.send_sign_up_link(get_unit_of_work(), email)
    return email


@sign_up.get("/<sealed>")
@open_to_anyone
def choose(sealed: str) -> ResponseReturnValue:
    """Show the form for the new account."""
    try:
        return _render_account_form(NewAccountForm(formdata=None), sealed)
    except NotFoundError as error:
        return _redirect_to_sign_in(str(error), "warning")


@sign_up.post("/<sealed>")
@open_to_anyone
@redirect_outdated_form(redirect_to_form_page)
def create(sealed: str) -> ResponseReturnValue:
    """Create the account, and sign the user in unless the account must be approved first."""
    form = NewAccountForm()
    try:
        made = form.run_if_valid(lambda: _create_account(sealed, form))
        if made is None:
            return _render_account_form(form, sealed)
    except NotFoundError as error:
        return _redirect_to_sign_in(str(error), "warning")
    except TooManyAttemptsError as error:
        form.add_error("username", str(error))
        page, _, headers = _render_account_form(form, sealed)
        return page, 429, {**headers, "Retry-After": str(error.retry_after)}
    if made.state != ACTIVE:
        return _redirect_to_sign_in(_PENDING_APPROVAL_MESSAGE)
    return create_sign_in_and_redirect(Authentication(user_id=made.id, methods=PASSWORD_METHODS))


def _create_account(sealed_text: str, form: NewAccountForm) -> UserView:
    return domain.create_account(
        get_unit_of_work(), *_unseal_link(sealed_text), form.build_entered_body(OwnAccountBody)
    )


def _unseal_link(sealed_text: str) -> tuple[str, str]:
    """Return the email address and the single-use number from a sign-up link.

    Raise NotFoundError if the link is expired or incomplete.
    """
    try:
        email, number = unseal_text(
            sealed_text, purpose=domain.SIGN_UP_LINK_PURPOSE, lifetime=SIGN_UP_LINK_LIFETIME
        )
    except BrokenSealError as error:
        message = "This link has expired or is incomplete. Sign up again to get a new one."
        raise NotFoundError(message) from error
    return str(email), str(number)


def _redirect_to_sign_in(sentence: str, kind: str = "message") -> ResponseReturnValue:
    flash(sentence, kind)
    return redirect(url_for("sessions.sign_in"))


def _render_email_form(form: SignUpForm) -> str:
    policy = domain.show_sign_up_policy(get_unit_of_work())
    return render_template("sessions/sign_up.html", form=form, policy=policy)


def _render_account_form(form: NewAccountForm, sealed_text: str) -> tuple[str, int, dict[str, str]]:
    email, _ = _unseal_link(sealed_text)
    page = render_template(
        "sessions/new_account.html",
        form=form,
        invitation=None,
        email=email,
        policy=domain.get_policy_for_sign_up_link(get_unit_of_work(), email),
        target=url_for("sign_up.create", sealed=sealed_text, next=get_return_url() or None),
        minimum=get_settings().password_min_length,
    )
    return page, 422 if form.errors else 200, SECRET_URL_HEADERS
