"""/admin/users/<id>/delete and /export: erasure and export of personal data."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.administration import get_account
from domain.accounts.users import UserView, get_user
from domain.errors import InvalidError, NotFoundError
from domain.personal_data.erasure import count_applications
from forms.erasure import DELETE, ErasureForm
from web.access.marks import administrator, get_current_user
from web.admin.personal_data import erase, export_file
from web.extensions import db

personal_data = Blueprint("personal_data", __name__, url_prefix="/users")


@personal_data.post("/<int:user_id>/export")
@administrator
def export(user_id: int) -> ResponseReturnValue:
    """Download the personal data of a user."""
    return export_file(get_account(user_id, session=db.session()))


@personal_data.route("/<int:user_id>/delete", methods=["GET", "POST"])
@administrator
def delete(user_id: int) -> ResponseReturnValue:
    """Show the consequences, and erase a person."""
    user = get_account(user_id, session=db.session())
    form = ErasureForm(heir=get_current_user().username)
    if not form.validate_on_submit():
        return _page(user, form)
    if (form.confirmation.data or "").lower() != user.username.lower():
        form.object_to("confirmation", f"This is not the user name {user.username}.")
        return _page(user, form)
    name = user.username
    try:
        erase(
            user,
            by=get_current_user().id,
            heir=_heir(form),
            may_delete_applications=form.applications.data == DELETE,
        )
    except InvalidError as error:
        db.session.rollback()
        form.object_to(error.field, str(error))
        return _page(get_account(user_id, session=db.session()), form)
    flash(f"Account {name} deleted.")
    return redirect(url_for("admin.users.index"))


def _heir(form: ErasureForm) -> UserView | None:
    if not form.heir_name:
        return None
    try:
        return get_user(form.heir_name, session=db.session())
    except NotFoundError as error:
        raise InvalidError(str(error), field="heir") from error


def _page(user: UserView, form: ErasureForm) -> ResponseReturnValue:
    page = render_template(
        "admin/users/delete.html",
        account=user,
        form=form,
        application_count=count_applications(user, session=db.session()),
    )
    return page, 422 if form.errors else 200
