"""Pages for a user's profile, password and other credentials."""

from flask import flash, redirect, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.accounts.settings.password_confirmation import (
    get_confirmation_error_message,
    get_entered_password,
    is_current_password,
    remove_unused_password_field,
)
from blueprints.accounts.sign_in.attempts import (
    get_next_url,
    pop_return_url,
    renew_current_sign_in,
)
from domain.accounts.email_addresses import find_unconfirmed_address
from domain.accounts.factors.recovery_codes import RECOVERY_CODE_COUNT
from domain.accounts.factors.second_factors import get_second_factors
from domain.accounts.identity_providers.identities import list_provider_connections
from domain.accounts.lifecycle import own_account
from domain.accounts.lifecycle.own_account import find_granted_access
from domain.accounts.types import PasswordBody, ProfileBody
from domain.accounts.users import normalize_email, set_page_size
from domain.core.database.pagination import parse_id
from domain.core.errors import InvalidError, TooManyAttemptsError
from forms.account import PasswordForm, ProfileForm
from web.access.decorators import get_current_user, sign_in_required
from web.access.second_factor_requirements import find_due_second_factor_requirement
from web.admin.personal_data import build_personal_data_response
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.sealing.pending_sign_ins import find_relying_party
from web.services import get_settings

account = PageBlueprint("account", __name__, url_prefix="/-/user_settings")


@account.route("/profile", methods=["GET", "POST"])
@sign_in_required
def profile() -> ResponseReturnValue:
    """Show and change the display name, email address and time zone."""
    user = get_current_user().user
    form = remove_unused_password_field(
        ProfileForm(name=user.name, email=user.email, time_zone=user.time_zone)
    )
    has_new_address = form.run_if_valid(lambda: _change_profile(form))
    if has_new_address is None:
        return _render_profile_page(form)
    more = " Your new email address has to be confirmed." if has_new_address else ""
    flash(f"Profile saved.{more}")
    return redirect(url_for("account.profile"))


def _change_profile(form: ProfileForm) -> bool:
    change, user = form.build_entered_body(ProfileBody), get_current_user().user
    has_new_address = normalize_email(change.email) != user.email
    if has_new_address and not is_current_password(get_entered_password(form)):
        entered = "Enter your current password to change the email address."
        message = entered if user.has_password else get_confirmation_error_message()
        raise InvalidError(message, field="current_password")
    return own_account.change_own_profile(get_unit_of_work(), change)


@account.post("/export")
@sign_in_required
def export() -> ResponseReturnValue:
    """Download the user's personal data."""
    return build_personal_data_response(get_current_user().id)


@account.route("/security", methods=["GET", "POST"])
@sign_in_required.with_changes(open_before_password_change=True)
def security() -> ResponseReturnValue:
    """Show the user's credentials, and change the password.

    A password change signs the user out of all other browsers.
    """
    form = remove_unused_password_field(PasswordForm())
    try:
        is_done = form.run_if_valid(lambda: _change_password(form))
    except TooManyAttemptsError as error:
        form.add_error("current_password", str(error))
        page, _ = _render_security_page(form)
        return page, 429, {"Retry-After": str(error.retry_after)}
    if not is_done:
        return _render_security_page(form)
    renew_current_sign_in()
    more = " All authorized applications were revoked." if form.end_applications.data else ""
    flash(f"Password changed. You were signed out of all other browsers.{more}")
    return redirect(pop_return_url())


def _change_password(form: PasswordForm) -> bool:
    if not is_current_password(get_entered_password(form)):
        raise InvalidError(get_confirmation_error_message(), field="current_password")
    new = form.build_entered_body(PasswordBody)
    own_account.change_own_password(get_unit_of_work(), get_current_user().sign_in_id, new)
    return True


def _render_security_page(form: PasswordForm) -> tuple[str, int]:
    return render_form_page(
        "account/security.html",
        form,
        factors=get_second_factors(get_current_user().id, session=db.session()),
        must_set_up=find_due_second_factor_requirement(),
        must_change=get_current_user().user.must_change_password,
        recovery_codes=RECOVERY_CODE_COUNT,
        has_passkeys=find_relying_party() is not None,
        connections=list_provider_connections(get_current_user().id, db.session()),
        base_url=get_settings().base_url,
        minimum=get_settings().password_min_length,
        **find_granted_access(get_unit_of_work(), get_current_user().id),
    )


def _render_profile_page(form: ProfileForm) -> tuple[str, int]:
    user = get_current_user().user
    return render_form_page(
        "account/profile.html",
        form,
        account=user,
        waiting=find_unconfirmed_address(user.id, session=db.session()),
        sends_mail=bool(get_settings().mail_url),
    )


page_sizes = PageBlueprint("page_sizes", __name__, url_prefix="/-/user_settings")


@page_sizes.post("/page_size")
@sign_in_required
def choose() -> ResponseReturnValue:
    """Store the number of rows per page and redirect to the list."""
    set_page_size(get_unit_of_work(), parse_id(request.form.get("size", "")) or 0)
    return redirect(get_next_url())
