"""A user's own settings: profile and password."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.sign_ins import close_other_sign_ins
from domain.accounts.users import authenticate, change_password, change_profile
from domain.errors import InvalidError, TooManyAttemptsError
from forms.password import PasswordForm
from forms.profile import ProfileForm
from web.access import signed_in, visitor
from web.bootstrap import forget_first_password
from web.extensions import db
from web.knocks import knock_of
from web.services import now, services, settings

account = Blueprint("account", __name__, url_prefix="/-/user_settings")


@account.route("/profile", methods=["GET", "POST"])
@signed_in
def profile() -> ResponseReturnValue:
    """Show and change the display name and address."""
    user = visitor().user
    form = ProfileForm(name=user.name, email=user.email)
    if not form.validate_on_submit():
        return _page("profile", form)
    try:
        change_profile(
            user,
            name=form.name.data or "",
            email=form.email.data or "",
            session=db.session(),
        )
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _page("profile", form)
    flash("Your profile is saved.")
    return redirect(url_for("account.profile"))


@account.route("/security", methods=["GET", "POST"])
@signed_in
def security() -> ResponseReturnValue:
    """Change the password; every other browser is signed out."""
    user = visitor().user
    form = PasswordForm(username=user.username, minimum=settings().password_min_length)
    if not form.validate_on_submit():
        return _page("security", form)
    try:
        if not _is_current(form.current_password.data or "", user.username):
            form.object_to("current_password", "This is not your current password.")
            return _page("security", form)
    except TooManyAttemptsError as error:
        form.object_to("current_password", str(error))
        page, _ = _page("security", form)
        return page, 429, {"Retry-After": str(error.retry_after)}
    change_password(user, form.new_password.data or "", now=now(), minimum=form.minimum)
    close_other_sign_ins(user.id, but=visitor().sign_in_id, session=db.session())
    forget_first_password(user.username)
    flash("Your password is changed. All your other browsers are signed out.")
    return redirect(url_for("account.security"))


def _is_current(password: str, username: str) -> bool:
    """Ask as the sign-in does: a browser left open is no place to guess either."""
    knock = knock_of(username, password)
    session, keyring = db.session(), services().keyring
    return authenticate(knock, session=session, keyring=keyring, now=now()) is not None


def _page(name: str, form: ProfileForm | PasswordForm) -> tuple[str, int]:
    return render_template(f"account/{name}.html", form=form), 422 if form.errors else 200
