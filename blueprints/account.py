"""A user's own settings: profile and password."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.passwords import is_password
from domain.accounts.sign_ins import close_other_sign_ins
from domain.accounts.users import change_password, change_profile
from domain.errors import InvalidError
from forms.password import PasswordForm
from forms.profile import ProfileForm
from web.access import signed_in, visitor
from web.bootstrap import forget_first_password
from web.extensions import db
from web.services import now, settings

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
    if not is_password(form.current_password.data or "", user.password_hash):
        form.object_to("current_password", "This is not your current password.")
        return _page("security", form)
    change_password(user, form.new_password.data or "", now=now(), minimum=form.minimum)
    close_other_sign_ins(user.id, but=visitor().sign_in_id, session=db.session())
    forget_first_password(user.username)
    flash("Your password is changed. All your other browsers are signed out.")
    return redirect(url_for("account.security"))


def _page(name: str, form: ProfileForm | PasswordForm) -> ResponseReturnValue:
    return render_template(f"account/{name}.html", form=form), 422 if form.errors else 200
