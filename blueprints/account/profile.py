"""A user's own settings: profile, password and other credentials."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.account.password_confirmation import WRONG_PASSWORD
from domain.accounts.email_addresses import find_waiting, request_change
from domain.accounts.factors.recovery_codes import HOW_MANY
from domain.accounts.factors.second_factors import factors_of
from domain.accounts.first_password import forget_first_password
from domain.accounts.signing_in.sessions import close_other_sign_ins
from domain.accounts.users import Profile, change_password, change_profile
from domain.audit.events import Event, EventKind
from domain.database.locks import release_locks
from domain.errors import InvalidError, TooManyAttemptsError
from domain.users.account_access import end_access, granted_access
from forms.password import PasswordForm
from forms.profile import ProfileForm
from web.access.marks import get_current_user, signed_in
from web.admin.personal_data import export_file
from web.extensions import db
from web.http.audit_events import record_event
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.sealing.passkey_challenges import find_relying_party
from web.services import letterhead, now, settings, sign_in_limits
from web.settings.password_rules import password_rules
from web.signing_in.completion import renew_this_sign_in
from web.signing_in.password_confirmation import is_current_password

account = PageBlueprint("account", __name__, url_prefix="/-/user_settings")


@account.route("/profile", methods=["GET", "POST"])
@signed_in
def profile() -> ResponseReturnValue:
    """Show and change the display name, the e-mail address and the time zone."""
    user = get_current_user().user
    form = ProfileForm(name=user.name, present_email=user.email, time_zone=user.time_zone)
    if not form.validate_on_submit():
        return _profile_page(form)
    if form.has_new_email and not is_current_password(form.current_password.data or ""):
        form.object_to(
            "current_password", "Enter your current password to change the e-mail address."
        )
        return _profile_page(form)
    try:
        _change_profile(form)
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _profile_page(form)
    flash(f"Profile saved.{' Your new address has to be confirmed.' if form.has_new_email else ''}")
    return redirect(url_for("account.profile"))


def _change_profile(form: ProfileForm) -> None:
    user, session = get_current_user().user, db.session()
    wanted = Profile(name=form.name.data or "", time_zone=form.time_zone.data or "")
    change_profile(user.id, wanted, session=session)
    if form.has_new_email:
        request_change(
            user.id,
            form.email.data or "",
            letterhead(),
            requests=sign_in_limits().email_limit(user.id),
            session=session,
            now=now(),
        )
        record_event(
            Event(kind=EventKind.EMAIL_CHANGE_REQUESTED, user_id=user.id, subject=user.username)
        )


@account.post("/export")
@signed_in
def export() -> ResponseReturnValue:
    """Download the personal data of the user."""
    return export_file(get_current_user().id)


@account.route("/security", methods=["GET", "POST"])
@signed_in.but(open_before_password_change=True)
def security() -> ResponseReturnValue:
    """Show the credentials and change the password; all other browsers are signed out."""
    form = _password_form()
    release_locks(db.session())  # to judge a new password takes a while
    if not form.validate_on_submit():
        return _security_page(form)
    try:
        is_proved = is_current_password(form.current_password.data or "")
    except TooManyAttemptsError as error:
        form.object_to("current_password", str(error))
        page, _ = _security_page(form)
        return page, 429, {"Retry-After": str(error.retry_after)}
    if not is_proved:
        form.object_to("current_password", WRONG_PASSWORD)
        return _security_page(form)
    _change_password(form)
    others = ["browsers"]
    others += ["applications"] if form.end_applications.data else []
    flash(f"Your password is changed. All your other {' and '.join(others)} are signed out.")
    return redirect(url_for("account.security"))


def _password_form() -> PasswordForm:
    user = get_current_user().user
    minimum = settings().password_min_length
    return PasswordForm(username=user.username, email=user.email, minimum=minimum)


def _change_password(form: PasswordForm) -> None:
    user = get_current_user().user
    change_password(
        user.id,
        form.new_password.data or "",
        session=db.session(),
        now=now(),
        rules=password_rules(settings()),
    )
    close_other_sign_ins(user.id, but=get_current_user().sign_in_id, session=db.session())
    renew_this_sign_in()
    forget_first_password(user.username, settings().instance_path)
    ended = end_access(
        work(), user.id, applications=form.end_applications.data, tokens=form.revoke_tokens.data
    )
    record_event(Event(kind=EventKind.PASSWORD_CHANGED, user_id=user.id, details=ended))


def _security_page(form: PasswordForm) -> tuple[str, int]:
    page = render_template(
        "account/security.html",
        form=form,
        factors=factors_of(get_current_user().id, session=db.session()),
        must_change=get_current_user().user.must_change_password,
        recovery_codes=HOW_MANY,
        has_passkeys=find_relying_party() is not None,
        base_url=settings().base_url,
        **granted_access(work(), get_current_user().id),
    )
    return page, 422 if form.errors else 200


def _profile_page(form: ProfileForm) -> tuple[str, int]:
    user = get_current_user().user
    page = render_template(
        "account/profile.html",
        form=form,
        account=user,
        waiting=find_waiting(user.id, session=db.session()),
        sends_mail=bool(settings().mail_url),
    )
    return page, 422 if form.errors else 200
