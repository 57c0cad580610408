"""Pages for a user's profile, password and other credentials."""

from flask import flash, redirect, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.accounts.own.password_confirmation import (
    is_current_password,
    password_in,
    refusal,
    without_missing_password,
)
from blueprints.accounts.signing_in.attempts import next_url, renew_this_sign_in, take_page
from domain.accounts.email_addresses import find_waiting
from domain.accounts.factors.recovery_codes import HOW_MANY
from domain.accounts.factors.second_factors import factors_of
from domain.accounts.identity_providers.identities import connections_of
from domain.accounts.lifecycle import own_account
from domain.accounts.lifecycle.own_account import granted_access
from domain.accounts.types import PasswordBody, ProfileBody
from domain.accounts.users import checked_email, choose_page_size
from domain.core.database.paging import parse_id
from domain.core.errors import InvalidError, TooManyAttemptsError
from forms.account import PasswordForm, ProfileForm
from web.access.decorators import get_current_user, signed_in
from web.access.second_factor_rule import must_set_up_second_factor
from web.admin.personal_data import export_file
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.form_pages import form_page
from web.sealing.sign_ins import find_relying_party
from web.services import settings

account = PageBlueprint("account", __name__, url_prefix="/-/user_settings")


@account.route("/profile", methods=["GET", "POST"])
@signed_in
def profile() -> ResponseReturnValue:
    """Show and change the display name, email address and time zone."""
    user = get_current_user().user
    form = without_missing_password(
        ProfileForm(name=user.name, email=user.email, time_zone=user.time_zone)
    )
    has_new_address = form.carry_out(lambda: _change_profile(form))
    if has_new_address is None:
        return _profile_page(form)
    more = " Your new email address has to be confirmed." if has_new_address else ""
    flash(f"Profile saved.{more}")
    return redirect(url_for("account.profile"))


def _change_profile(form: ProfileForm) -> bool:
    change, user = form.read(ProfileBody), get_current_user().user
    has_new_address = checked_email(change.email) != user.email
    if has_new_address and not is_current_password(password_in(form)):
        entered = "Enter your current password to change the email address."
        message = entered if user.has_password else refusal()
        raise InvalidError(message, field="current_password")
    return own_account.change_own_profile(work(), change)


@account.post("/export")
@signed_in
def export() -> ResponseReturnValue:
    """Download the user's personal data."""
    return export_file(get_current_user().id)


@account.route("/security", methods=["GET", "POST"])
@signed_in.but(open_before_password_change=True)
def security() -> ResponseReturnValue:
    """Show the user's credentials, and change the password.

    A password change signs the user out of all other browsers.
    """
    form = without_missing_password(PasswordForm())
    try:
        is_done = form.carry_out(lambda: _change_password(form))
    except TooManyAttemptsError as error:
        form.object_to("current_password", str(error))
        page, _ = _security_page(form)
        return page, 429, {"Retry-After": str(error.retry_after)}
    if not is_done:
        return _security_page(form)
    renew_this_sign_in()
    more = " All authorized applications were revoked." if form.end_applications.data else ""
    flash(f"Password changed. You were signed out of all other browsers.{more}")
    return redirect(take_page())


def _change_password(form: PasswordForm) -> bool:
    if not is_current_password(password_in(form)):
        raise InvalidError(refusal(), field="current_password")
    new = form.read(PasswordBody)
    own_account.change_own_password(work(), get_current_user().sign_in_id, new)
    return True


def _security_page(form: PasswordForm) -> tuple[str, int]:
    return form_page(
        "account/security.html",
        form,
        factors=factors_of(get_current_user().id, session=db.session()),
        must_set_up=must_set_up_second_factor(),
        must_change=get_current_user().user.must_change_password,
        recovery_codes=HOW_MANY,
        has_passkeys=find_relying_party() is not None,
        connections=connections_of(get_current_user().id, db.session()),
        base_url=settings().base_url,
        minimum=settings().password_min_length,
        **granted_access(work(), get_current_user().id),
    )


def _profile_page(form: ProfileForm) -> tuple[str, int]:
    user = get_current_user().user
    return form_page(
        "account/profile.html",
        form,
        account=user,
        waiting=find_waiting(user.id, session=db.session()),
        sends_mail=bool(settings().mail_url),
    )


page_sizes = PageBlueprint("page_sizes", __name__, url_prefix="/-/user_settings")


@page_sizes.post("/page_size")
@signed_in
def choose() -> ResponseReturnValue:
    """Store the number of rows per page and return to the list."""
    choose_page_size(work(), parse_id(request.form.get("size", "")) or 0)
    return redirect(next_url())
