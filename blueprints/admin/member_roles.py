"""The /admin/member_roles page: custom roles of the instance."""

from typing import NamedTuple

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.access.roles import MINIMUM_ROLES, Ability
from domain.core.errors import InvalidError
from domain.projects import member_roles as actions
from domain.projects.member_roles import find_all_member_roles
from forms.members import MemberRoleForm
from web.access.decorators import administrator_required
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page

member_roles = Blueprint("member_roles", __name__, url_prefix="/member_roles")


class PermissionChoice(NamedTuple):
    """A permission that the form for a custom role offers, with its title and description."""

    name: str
    title: str
    description: str


_PERMISSION_TEXTS = {
    Ability.READ_CODE: ("Read code", "Clone and fetch a private project."),
    Ability.READ_ALERTS: ("See alerts", "Includes silences and maintenance windows."),
    Ability.ADMIN_ALERTS: (
        "Handle alerts",
        "Acknowledge, resolve, assign, comment on and silence alerts. Includes “See alerts”.",
    ),
    Ability.READ_ENVIRONMENTS: ("See environments", "Includes deployments, through the API."),
    Ability.ADMIN_ENVIRONMENTS: (
        "Manage environments",
        "Create, change and delete environments. Includes “See environments”.",
    ),
    Ability.ADMIN_INTEGRATIONS: (
        "Manage integrations",
        "Includes their keys, deliveries and test alerts.",
    ),
}


@member_roles.get("")
@administrator_required
def index() -> ResponseReturnValue:
    """List the custom roles."""
    return _render_page()


@member_roles.route("/new", methods=["GET", "POST"])
@administrator_required
def new() -> ResponseReturnValue:
    """Create a custom role."""
    form = MemberRoleForm()
    made = form.run_if_valid(
        lambda: actions.create_member_role(get_unit_of_work(), form.build_role())
    )
    if made is None:
        return _render_form(form)
    flash(f"Role “{made.name}” created. Assign it on the Members page of a group or project.")
    return redirect(url_for("admin.member_roles.index"))


@member_roles.post("/<int:role_id>/delete")
@administrator_required
def delete(role_id: int) -> ResponseReturnValue:
    """Delete a custom role that no member has."""
    try:
        removed = actions.delete_member_role(get_unit_of_work(), role_id)
    except InvalidError as error:
        return _render_page(problem=str(error))
    flash(f"Role “{removed.name}” deleted.")
    return redirect(url_for("admin.member_roles.index"))


def _render_page(*, problem: str = "") -> ResponseReturnValue:
    roles = find_all_member_roles(session=db.session())
    titles = {ability: words[0] for ability, words in _PERMISSION_TEXTS.items()}
    page = render_template(
        "admin/member_roles/index.html", roles=roles, titles=titles, problem=problem
    )
    return page, 422 if problem else 200


def _render_form(form: MemberRoleForm) -> ResponseReturnValue:
    choices = [
        PermissionChoice(
            each.value,
            title,
            f"{words} {MINIMUM_ROLES[each].label}s and above always have this permission.",
        )
        for each, (title, words) in _PERMISSION_TEXTS.items()
    ]
    return render_form_page("admin/member_roles/new.html", form, choices=choices)
