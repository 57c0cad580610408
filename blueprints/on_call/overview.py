"""/<project>/-/on_call: who is on call now and next, in every schedule of a project."""

from flask import render_template
from flask.typing import ResponseReturnValue

from domain.on_call.change_actions import own_swaps
from domain.on_call.shifts import on_call_in_project
from domain.projects.views import ProjectView
from web.access.marks import permitted
from web.http.endpoints import PageBlueprint
from web.http.work import work

on_call = PageBlueprint("on_call", __name__, url_prefix="/<names:project_path>/-/on_call")


@on_call.get("")
@permitted("on_call_schedules.current")
def index(project: ProjectView) -> ResponseReturnValue:
    """Show who is on call now and next, in every schedule."""
    return render_template(
        "on_call/index.html",
        project=project,
        schedules=on_call_in_project(work(), project),
        swaps=own_swaps(work(), project),
    )
