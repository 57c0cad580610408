"""Pages that set up, renew and remove a user's authenticator app and recovery codes."""

from flask import Response, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.accounts.settings.password_confirmation import validate_with_password
from blueprints.accounts.sign_in.attempts import (
    complete_factor_setup,
    pop_recovery_codes,
    pop_return_url,
    redirect_to_recovery_codes,
    renew_current_sign_in,
)
from domain.accounts.factors import recovery_codes, totp
from domain.accounts.factors.second_factors import get_second_factors, has_second_factor
from domain.accounts.lifecycle import own_account
from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import InvalidError
from forms.account import AuthenticatorForm, PasswordConfirmationForm
from web.access.decorators import get_current_user, sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.pages.qr_codes import build_qr_code
from web.sealing.sealed_values import find_secret, store_secret, take_secret
from web.services import get_settings

second_factors = PageBlueprint("second_factors", __name__, url_prefix="/-/user_settings/security")

#: Session key for the secret of a new authenticator app, until the user enters a code from the app.
_SEED_SESSION_KEY = "authenticator_seed"


@second_factors.route("/authenticator", methods=["GET", "POST"])
@sign_in_required.with_changes(open_before_second_factor=True)
def authenticator() -> ResponseReturnValue:
    """Show a new app secret, and store it after the user enters a valid code."""
    if get_second_factors(get_current_user().id, session=db.session()).has_app:
        return redirect(url_for("account.security"))
    form, seed = AuthenticatorForm(), _get_or_create_seed()
    if not validate_with_password(form):
        return _render_authenticator_page(form, seed)
    try:
        codes = own_account.add_own_authenticator_app(
            get_unit_of_work(), get_current_user().sign_in_id, seed, form.code.data or ""
        )
    except InvalidError as error:
        form.add_error(error.field, str(error))
        return _render_authenticator_page(form, seed)
    take_secret(_SEED_SESSION_KEY)
    return complete_factor_setup(own_account.AUTHENTICATOR_APP, codes)


@second_factors.route("/authenticator/remove", methods=["GET", "POST"])
@sign_in_required
def remove_authenticator() -> ResponseReturnValue:
    """Remove the authenticator app after checking the password."""
    form = PasswordConfirmationForm()
    if not validate_with_password(form):
        return render_form_page("second_factors/remove_authenticator.html", form)
    if own_account.remove_own_authenticator_app(get_unit_of_work()):
        renew_current_sign_in()
        flash("Authenticator app removed.")
    return redirect(url_for("account.security"))


@second_factors.route("/recovery_codes/renew", methods=["GET", "POST"])
@sign_in_required
def renew_recovery_codes() -> ResponseReturnValue:
    """Replace the recovery codes after checking the password."""
    if not has_second_factor(get_current_user().id, session=db.session()):
        return redirect(url_for("account.security"))
    form = PasswordConfirmationForm()
    if not validate_with_password(form):
        return render_form_page("second_factors/renew_recovery_codes.html", form)
    renew_current_sign_in()
    return redirect_to_recovery_codes(own_account.renew_recovery_codes(get_unit_of_work()))


@second_factors.get("/recovery_codes")
@sign_in_required.with_changes(open_before_second_factor=True)
def show_recovery_codes() -> ResponseReturnValue:
    """Show newly issued recovery codes once."""
    codes = pop_recovery_codes()
    if not codes:
        return redirect(pop_return_url())
    page = render_template(
        "second_factors/recovery_codes.html", codes=codes, next_page=pop_return_url()
    )
    return page, 200, {"Cache-Control": "no-store"}


@second_factors.post("/recovery_codes/download")
@sign_in_required.with_changes(open_before_second_factor=True)
def download_recovery_codes() -> ResponseReturnValue:
    """Return the submitted recovery codes as a file.

    The page submits the codes, because the service does not store them in plaintext.
    """
    codes = [
        code
        for code in request.form.getlist("code")
        if recovery_codes.normalize_recovery_code(code)
    ]
    lines = (
        f"Recovery codes of {get_current_user().username} at {get_settings().instance_name}",
        get_settings().base_url,
        "Each code can be used once instead of your authenticator app or passkey.",
        "",
        *codes[: recovery_codes.RECOVERY_CODE_COUNT],
    )
    file = Response("\n".join(lines) + "\n", mimetype="text/plain")
    file.headers["Content-Disposition"] = 'attachment; filename="recovery-codes.txt"'
    file.headers["Cache-Control"] = "no-store"
    return file


def _get_or_create_seed() -> str:
    """Return the secret that was already shown in this browser, or a new secret."""
    seed = find_secret(_SEED_SESSION_KEY)
    if seed is None:
        seed = totp.generate_seed()
        store_secret(_SEED_SESSION_KEY, seed)
    return seed


def _render_authenticator_page(form: AuthenticatorForm, seed: str) -> ResponseReturnValue:
    uri = totp.build_provisioning_uri(
        seed, username=get_current_user().username, instance=get_settings().instance_name
    )
    commit_to_release_locks(db.session())  # Rendering the QR code is slow.
    picture = build_qr_code(uri)
    page = render_template(
        "second_factors/authenticator.html",
        form=form,
        picture=picture,
        key=" ".join(seed[start : start + 4] for start in range(0, len(seed), 4)),
    )
    return page, 422 if form.errors else 200, {"Cache-Control": "no-store"}
