"""Pages that add, rename and remove a user's passkeys."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.accounts.settings.password_confirmation import (
    get_confirmation_error_message,
    get_entered_password,
    is_current_password,
    remove_unused_password_field,
    validate_with_password,
)
from blueprints.accounts.sign_in.attempts import complete_factor_setup, renew_current_sign_in
from domain.accounts.factors import passkeys as domain
from domain.accounts.factors.passkeys import InvalidPasskeyError
from domain.accounts.lifecycle import own_account
from forms.account import (
    CreatedPasskeyForm,
    NewPasskeyForm,
    PasskeyNameForm,
    PasswordConfirmationForm,
)
from web.access.decorators import get_current_user, sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.sealing.pending_sign_ins import (
    find_relying_party,
    get_relying_party,
    store_challenge,
    take_passkey_response,
)
from web.services import get_services

passkeys = PageBlueprint("passkeys", __name__, url_prefix="/-/user_settings/security/passkeys")


@passkeys.get("/new")
@sign_in_required.with_changes(open_before_second_factor=True)
def new() -> ResponseReturnValue:
    """Show the form for a new passkey's name and the current password."""
    if find_relying_party() is None:
        return redirect(url_for("account.security"))
    return _render_new_page(NewPasskeyForm(formdata=None))


@passkeys.post("/new.json")
@sign_in_required.with_changes(open_before_second_factor=True)
def begin() -> ResponseReturnValue:
    """Check the password and return the WebAuthn options for creating a passkey."""
    form = remove_unused_password_field(NewPasskeyForm())
    if not form.validate_on_submit():
        return _build_error_object(form), 422
    if not is_current_password(get_entered_password(form)):
        return {"message": get_confirmation_error_message()}, 422
    ceremony = domain.build_creation_options(
        get_current_user().id,
        get_relying_party(),
        username=get_current_user().username,
        name=get_current_user().name,
        session=db.session(),
        keyring=get_services().keyring,
    )
    return store_challenge(ceremony, purpose=_format_challenge_purpose())


@passkeys.post("/new")
@sign_in_required.with_changes(open_before_second_factor=True)
def add() -> ResponseReturnValue:
    """Store the new passkey."""
    form = CreatedPasskeyForm()
    if not form.validate_on_submit():
        return _render_new_page(form), 422
    name = form.name.data or ""
    try:
        reply = take_passkey_response(
            form.credential.data or "", purpose=_format_challenge_purpose()
        )
        codes = own_account.add_passkey(
            get_unit_of_work(), get_current_user().sign_in_id, reply, name
        )
    except InvalidPasskeyError as error:
        form.add_error("", str(error))
        return _render_new_page(form), 422
    return complete_factor_setup(f"passkey {name}", codes)


@passkeys.route("/<int:passkey_id>", methods=["GET", "POST"])
@sign_in_required
def rename(passkey_id: int) -> ResponseReturnValue:
    """Show the form for a passkey's name, and rename the passkey."""
    mine = get_current_user().id
    passkey = domain.get_passkey(passkey_id, owner_id=mine, session=db.session())
    form = PasskeyNameForm(name=passkey.name)
    if not form.validate_on_submit():
        return render_form_page("passkeys/rename.html", form, passkey=passkey)
    own_account.rename_passkey(get_unit_of_work(), passkey_id, form.name.data or "")
    flash("Passkey renamed.")
    return redirect(url_for("account.security"))


@passkeys.route("/<int:passkey_id>/remove", methods=["GET", "POST"])
@sign_in_required
def remove(passkey_id: int) -> ResponseReturnValue:
    """Remove a passkey after checking the password."""
    passkey = domain.get_passkey(passkey_id, owner_id=get_current_user().id, session=db.session())
    form = PasswordConfirmationForm()
    if validate_with_password(form):
        own_account.remove_passkey(get_unit_of_work(), passkey_id)
        renew_current_sign_in()
        flash("Passkey removed. You can also delete it from your device.")
        return redirect(url_for("account.security"))
    return render_form_page("passkeys/remove.html", form, passkey=passkey)


def _format_challenge_purpose() -> str:
    return f"new, for sign-in {get_current_user().sign_in_id}"


def _build_error_object(form: NewPasskeyForm) -> dict[str, str]:
    """Return a JSON object with all errors of the form, joined into one message."""
    return {
        "message": " ".join(str(each) for messages in form.errors.values() for each in messages)
    }


def _render_new_page(form: NewPasskeyForm | CreatedPasskeyForm) -> str:
    return render_template("passkeys/new.html", form=form)
