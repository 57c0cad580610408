"""/admin/users/<id>/delete and /export: erasure and export of personal data."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.administration import get_account
from domain.accounts.types import Erased
from domain.errors import InvalidError, NotFoundError
from domain.personal_data.erasure import count_applications
from domain.users import actions
from forms.account import ErasureForm
from web.access.marks import administrator, get_current_user
from web.admin.personal_data import export_file
from web.extensions import db
from web.http.work import work

personal_data = Blueprint("personal_data", __name__, url_prefix="/users")


@personal_data.post("/<int:user_id>/export")
@administrator
def export(user_id: int) -> ResponseReturnValue:
    """Download the personal data of a user."""
    return export_file(user_id)


@personal_data.route("/<int:user_id>/delete", methods=["GET", "POST"])
@administrator
def delete(user_id: int) -> ResponseReturnValue:
    """Show the consequences, and erase a person."""
    user = get_account(user_id, session=db.session())
    form = ErasureForm(heir=get_current_user().username, username=user.username)
    if form.is_submitted() and form.carry_out(lambda: _delete(user_id, form)):
        flash(f"Account {user.username} deleted.")
        return redirect(url_for("admin.users.index"))
    page = render_template(
        "admin/users/delete.html",
        account=user,
        form=form,
        application_count=count_applications(user, session=db.session()),
    )
    return page, 422 if form.errors else 200


def _delete(user_id: int, form: ErasureForm) -> Erased:
    try:
        return actions.delete_user(work(), user_id, form.body)
    except NotFoundError as error:
        raise InvalidError(str(error), field="heir") from error
