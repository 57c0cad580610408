"""The second-factor check after the password: app code, recovery code or passkey."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from blueprints.accounts.sign_in.attempts import (
    create_sign_in_and_redirect,
    get_device_ids,
    get_next_url,
    get_requested_page,
)
from domain.accounts.factors.passkeys import InvalidPasskeyError, build_second_factor_options
from domain.accounts.factors.second_factors import get_second_factors
from domain.accounts.sign_in import actions as sign_in_actions
from domain.accounts.sign_in.actions import WrongCodeError
from domain.accounts.sign_in.sessions import get_passkey_method
from domain.accounts.users import lock_account_row
from domain.core.errors import InvalidError, TooManyAttemptsError
from forms.sign_in import PasskeyResponseForm, SecondFactorCodeForm
from web.access.decorators import open_to_anyone
from web.access.return_urls import shorten_return_url
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.outdated_forms import OUTDATED_FORM_MESSAGE, redirect_outdated_form
from web.http.unit_of_work import get_unit_of_work
from web.sealing.pending_sign_ins import (
    PendingSignIn,
    consume_pending_sign_in,
    find_pending_sign_in,
    find_relying_party,
    get_relying_party,
    store_challenge,
    take_passkey_response,
)

two_factor = PageBlueprint(
    "two_factor", __name__, url_prefix="/users/two_factor", leads_to_applications=True
)


@two_factor.get("")
@open_to_anyone
def enter() -> ResponseReturnValue:
    """Show the form for the second factor."""
    pending = find_pending_sign_in()
    return (
        _render_form(SecondFactorCodeForm(formdata=None), pending)
        if pending
        else _restart_sign_in()
    )


def _redirect_to_second_factor_step() -> ResponseReturnValue:
    """Redirect to the second-factor page, which redirects again if no check is pending."""
    flash(OUTDATED_FORM_MESSAGE, "warning")
    next_page = shorten_return_url(get_requested_page())
    return redirect(url_for("two_factor.enter", next=next_page or None), code=303)


@two_factor.post("")
@open_to_anyone
@redirect_outdated_form(_redirect_to_second_factor_step)
def check_code() -> ResponseReturnValue:
    """Check an app code or a recovery code."""
    pending, form = find_pending_sign_in(), SecondFactorCodeForm()
    if pending is None:
        return _restart_sign_in()
    if not form.validate_on_submit():
        return _render_form(form, pending), 422
    try:
        user_id, typed = pending.user.id, form.code.data or ""
        sign_in_actions.check_second_factor_code(
            get_unit_of_work(), user_id, typed, device_id=_find_device_id(pending)
        )
    except (InvalidError, TooManyAttemptsError) as error:
        return _render_error(form, pending, error)
    return _complete_pending_sign_in(pending, "otp")


@two_factor.post("/passkey.json")
@open_to_anyone
def build_passkey_options() -> ResponseReturnValue:
    """Return the WebAuthn options for authenticating with one of the user's passkeys."""
    pending = find_pending_sign_in()
    if pending is None:
        return {"message": "Your sign-in has expired. Reload the page and sign in again."}, 403
    ceremony = build_second_factor_options(
        pending.user.id, get_relying_party(), session=db.session()
    )
    return store_challenge(ceremony, purpose=_format_challenge_purpose(pending))


@two_factor.post("/passkey")
@open_to_anyone
@redirect_outdated_form(_redirect_to_second_factor_step)
def check_passkey() -> ResponseReturnValue:
    """Check a passkey as the second factor."""
    pending, form = find_pending_sign_in(), SecondFactorCodeForm(formdata=None)
    if pending is None:
        return _restart_sign_in()
    try:
        reply = take_passkey_response(
            PasskeyResponseForm().credential.data or "", purpose=_format_challenge_purpose(pending)
        )
        assertion = sign_in_actions.check_second_factor_passkey(
            get_unit_of_work(), pending.user.id, reply, device_id=_find_device_id(pending)
        )
    except (InvalidPasskeyError, TooManyAttemptsError) as error:
        return _render_error(form, pending, error)
    return _complete_pending_sign_in(pending, get_passkey_method(assertion))


def _format_challenge_purpose(pending_sign_in: PendingSignIn) -> str:
    return f"second factor {pending_sign_in.number}"


def _find_device_id(pending_sign_in: PendingSignIn) -> str | None:
    return get_device_ids().get(pending_sign_in.user.id)


def _complete_pending_sign_in(pending_sign_in: PendingSignIn, method: str) -> ResponseReturnValue:
    """Complete a pending sign-in, unless it was already used or has expired."""
    lock_account_row(pending_sign_in.user.id, session=db.session())
    if find_pending_sign_in() is None or not consume_pending_sign_in(pending_sign_in):
        return _restart_sign_in()
    return create_sign_in_and_redirect(pending_sign_in.first.with_second_factor(method))


def _restart_sign_in() -> ResponseReturnValue:
    if current_user.is_authenticated:
        return redirect(get_next_url())  # The user went back after completing both steps.
    flash(
        "Sign in again. Two-factor authentication has to be completed within ten minutes.",
        "warning",
    )
    return redirect(url_for("sessions.sign_in", next=get_requested_page() or None))


def _render_error(
    form: SecondFactorCodeForm,
    pending_sign_in: PendingSignIn,
    error: InvalidError | TooManyAttemptsError,
) -> ResponseReturnValue:
    if isinstance(error, TooManyAttemptsError):
        form.add_error("code", str(error))
        return _render_form(form, pending_sign_in), 429, {"Retry-After": str(error.retry_after)}
    if isinstance(error, WrongCodeError | InvalidPasskeyError):
        form.code.data = ""  # The user cannot correct a used code.
    form.add_error(error.field, str(error))
    return _render_form(form, pending_sign_in), 422


def _render_form(form: SecondFactorCodeForm, pending_sign_in: PendingSignIn) -> str:
    factors = get_second_factors(pending_sign_in.user.id, session=db.session())
    return render_template(
        "sessions/two_factor.html",
        form=form if factors.has_app else form.require_recovery_code(),
        username=pending_sign_in.user.username,
        has_app=factors.has_app,
        has_passkeys=bool(factors.passkeys) and find_relying_party() is not None,
    )
