"""The second-factor check after the password: app code, recovery code or passkey."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from blueprints.accounts.signing_in.attempts import (
    known_accounts,
    next_url,
    requested_page,
    sign_in_as,
)
from domain.accounts.factors.passkeys import PasskeyRefusedError, request_options_for
from domain.accounts.factors.second_factors import factors_of
from domain.accounts.signing_in import actions as signing_in
from domain.accounts.signing_in.actions import WrongCodeError
from domain.accounts.signing_in.sessions import key_of
from domain.accounts.users import lock_account
from domain.core.errors import InvalidError, TooManyAttemptsError
from forms.signing_in import CodeForm, PasskeyResponseForm
from web.access.decorators import open_to_anyone
from web.access.kept_pages import short_address
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.outdated_forms import OUTDATED_FORM, leads_back
from web.http.work import work
from web.sealing.sign_ins import (
    PendingSignIn,
    consume,
    find_pending_sign_in,
    find_relying_party,
    get_relying_party,
    remember_challenge,
    take_response,
)

two_factor = PageBlueprint(
    "two_factor", __name__, url_prefix="/users/two_factor", leads_to_applications=True
)


@two_factor.get("")
@open_to_anyone
def enter() -> ResponseReturnValue:
    """Show the form for the second factor."""
    pending = find_pending_sign_in()
    return _page(CodeForm(formdata=None), pending) if pending else _begin_again()


def _back_to_step() -> ResponseReturnValue:
    """Redirect to this step, which redirects again if there is nothing left to check."""
    flash(OUTDATED_FORM, "warning")
    next_page = short_address(requested_page())
    return redirect(url_for("two_factor.enter", next=next_page or None), code=303)


@two_factor.post("")
@open_to_anyone
@leads_back(_back_to_step)
def check_code() -> ResponseReturnValue:
    """Check an app code or a recovery code."""
    pending, form = find_pending_sign_in(), CodeForm()
    if pending is None:
        return _begin_again()
    if not form.validate_on_submit():
        return _page(form, pending), 422
    try:
        user_id, typed = pending.user.id, form.code.data or ""
        signing_in.prove_code(work(), user_id, typed, device_id=_device_id(pending))
    except (InvalidError, TooManyAttemptsError) as error:
        return _refused(form, pending, error)
    return _go_on(pending, "otp")


@two_factor.post("/passkey.json")
@open_to_anyone
def ask_for_passkey() -> ResponseReturnValue:
    """Return the options to authenticate with a passkey of the user."""
    pending = find_pending_sign_in()
    if pending is None:
        return {"message": "Your sign-in has expired. Reload the page and sign in again."}, 403
    ceremony = request_options_for(pending.user.id, get_relying_party(), session=db.session())
    return remember_challenge(ceremony, purpose=_purpose(pending))


@two_factor.post("/passkey")
@open_to_anyone
@leads_back(_back_to_step)
def check_passkey() -> ResponseReturnValue:
    """Check a passkey."""
    pending, form = find_pending_sign_in(), CodeForm(formdata=None)
    if pending is None:
        return _begin_again()
    try:
        reply = take_response(
            PasskeyResponseForm().credential.data or "", purpose=_purpose(pending)
        )
        assertion = signing_in.prove_passkey(
            work(), pending.user.id, reply, device_id=_device_id(pending)
        )
    except (PasskeyRefusedError, TooManyAttemptsError) as error:
        return _refused(form, pending, error)
    return _go_on(pending, key_of(assertion))


def _purpose(pending: PendingSignIn) -> str:
    return f"second factor {pending.number}"


def _device_id(pending: PendingSignIn) -> str | None:
    return known_accounts().get(pending.user.id)


def _go_on(pending: PendingSignIn, method: str) -> ResponseReturnValue:
    """Sign in, unless the pending sign-in was already used or has ended in the meantime."""
    lock_account(pending.user.id, session=db.session())
    if find_pending_sign_in() is None or not consume(pending):
        return _begin_again()
    return sign_in_as(pending.first.and_then(method))


def _begin_again() -> ResponseReturnValue:
    if current_user.is_authenticated:
        return redirect(next_url())  # the user went back after completing both steps
    flash(
        "Sign in again. Two-factor authentication has to be completed within ten minutes.",
        "warning",
    )
    return redirect(url_for("sessions.sign_in", next=requested_page() or None))


def _refused(
    form: CodeForm, pending: PendingSignIn, error: InvalidError | TooManyAttemptsError
) -> ResponseReturnValue:
    if isinstance(error, TooManyAttemptsError):
        form.object_to("code", str(error))
        return _page(form, pending), 429, {"Retry-After": str(error.retry_after)}
    if isinstance(error, WrongCodeError | PasskeyRefusedError):
        form.code.data = ""  # a used code cannot be corrected
    form.object_to(error.field, str(error))
    return _page(form, pending), 422


def _page(form: CodeForm, pending: PendingSignIn) -> str:
    factors = factors_of(pending.user.id, session=db.session())
    return render_template(
        "sessions/two_factor.html",
        form=form if factors.has_app else form.without_app(),
        username=pending.user.username,
        has_app=factors.has_app,
        has_passkeys=bool(factors.passkeys) and find_relying_party() is not None,
    )
