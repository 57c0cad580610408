"""/<project>/-/on_call: who is on call now and next, in every schedule of a project."""

from flask import render_template
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.access.abilities import Ability
from domain.access.roles import Role
from domain.on_call.shifts import on_call_in_project
from domain.on_call.swaps import swaps_of_user
from domain.projects.views import ProjectView
from web.access.marks import project_member
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.services import now

on_call = PageBlueprint("on_call", __name__, url_prefix="/<names:project_path>/-/on_call")


@on_call.get("")
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def index(project: ProjectView) -> ResponseReturnValue:
    """Show who is on call now and next, in every schedule."""
    session, moment = db.session(), now()
    return render_template(
        "on_call/index.html",
        project=project,
        schedules=on_call_in_project(project.id, session=session, now=moment),
        swaps=swaps_of_user(project.id, current_user.id, session=session, now=moment),
    )
