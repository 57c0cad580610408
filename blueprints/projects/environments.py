"""Pages for a project's environments: the list, and a page for each environment with its alerts."""

from typing import Any

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.access.roles import Ability, Role
from domain.alerts import environments as domain
from domain.alerts.environments import EnvironmentFilter
from domain.alerts.listing import daily_counts
from domain.alerts.listing.filters import OPEN_STATUSES, AlertFilter
from domain.alerts.listing.queries import list_alerts
from domain.alerts.listing.sort_orders import AlertSlice, parse_sort_cursor
from domain.ci_cd import environment_actions as actions
from domain.ci_cd.deployment_actions import (
    find_deployed_versions_by_day,
    find_newest_deployment_by_environment,
)
from domain.ci_cd.environment_actions import find_deployment_history
from domain.ci_cd.types import NewEnvironment
from domain.core.database.pagination import get_search_text
from domain.core.errors import ConflictError, InvalidError
from domain.core.types.base import Query, RequestDay
from domain.projects.views import ProjectView
from forms.projects import EnvironmentForm
from web.access.decorators import permission_required, project_role_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    build_page_links,
    get_list_query,
    get_page_size,
    read_query_parameters,
)
from web.services import get_current_time

#: Maximum number of deployments on an environment's page. The API lists all deployments.
_MAX_DEPLOYMENTS = 10
#: Maximum number of deployments that are marked in the chart.
_MAX_MARKS = 200


class _DayQuery(Query):
    """A query for the deployments on one day (UTC)."""

    day: RequestDay | None = None


environments = PageBlueprint(
    "environments", __name__, url_prefix="/<names:project_path>/-/environments"
)


@environments.route("", methods=["GET"])
@project_role_required(at_least=Role.DEVELOPER, ability=Ability.READ_ENVIRONMENTS)
def index(project: ProjectView) -> ResponseReturnValue:
    """List environments with their open alerts."""
    return _render_list(project, EnvironmentForm(formdata=None))


def _render_list(project: ProjectView, form: EnvironmentForm) -> ResponseReturnValue:
    given = get_list_query("search", "before")
    search = get_search_text(given, "search").strip()
    objection = ""
    try:
        domain.check_environment_search(search)
        wanted = EnvironmentFilter(project_id=project.id, search=search)
    except InvalidError as error:
        wanted, objection = EnvironmentFilter(project_id=project.id), str(error)
    found = domain.list_environments(
        wanted, given.get("before"), size=get_page_size(), session=db.session()
    )
    page = render_template(
        "environments/index.html",
        project=project,
        page=build_page_links(found),
        deployments=find_newest_deployment_by_environment(get_unit_of_work(), found.items),
        search=search,
        objection=objection,
        form=form,
    )
    if form.errors:
        return page, 422
    return page, 400 if objection else 200


@environments.post("")
@permission_required("environments.create")
def create(project: ProjectView) -> ResponseReturnValue:
    """Create an environment."""
    form = EnvironmentForm()
    made = form.run_if_valid(
        lambda: actions.create_environment(
            get_unit_of_work(), project, form.build_entered_body(NewEnvironment)
        )
    )
    if made is None:
        return _render_list(project, form)
    flash("Environment created. Open alerts that name it are listed here.")
    return redirect(_build_environment_url(project, made.reference))


@environments.get("/<path:reference>")
@project_role_required(at_least=Role.DEVELOPER, ability=Ability.READ_ENVIRONMENTS)
def show(project: ProjectView, reference: str) -> ResponseReturnValue:
    """Show an environment's open alerts and deployments, and a chart of recent days."""
    session = db.session()
    environment = domain.get_environment(project.id, reference, session=session)
    wanted = AlertFilter(
        project_id=project.id, statuses=OPEN_STATUSES, environment=environment.name
    )
    given = get_list_query(*CURSOR_PARAMETERS, *_DayQuery.model_fields)
    part = AlertSlice(
        size=get_page_size(),
        following=parse_sort_cursor(given.get("before"), AlertSlice.order),
        preceding=parse_sort_cursor(given.get("after"), AlertSlice.order),
    )
    return render_template(
        "environments/show.html",
        project=project,
        environment=environment,
        page=build_page_links(list_alerts(wanted, part, session=session)),
        **_build_chart_variables(project, environment),
    )


def _build_chart_variables(
    project: ProjectView, environment: domain.EnvironmentView
) -> dict[str, Any]:
    """Return the template variables for the chart, and for deployments on one day or all days."""
    session, today = db.session(), get_current_time().date()
    day, work = read_query_parameters(_DayQuery).day, get_unit_of_work()
    most = _MAX_MARKS if day else _MAX_DEPLOYMENTS
    history = find_deployment_history(work, project, environment, maximum=most)
    return {
        "day": day,
        "history": [each for each in history if day in {None, each.deployment.created_at.date()}],
        "days": daily_counts.count_alerts_by_day(
            project.id, today, environment=environment.name, session=session
        ),
        "marks": find_deployed_versions_by_day(environment, maximum=_MAX_MARKS, session=session),
    }


@environments.post("/<int:environment_id>/stop")
@permission_required("environments.stop")
def stop(project: ProjectView, environment_id: int) -> ResponseReturnValue:
    """Stop an environment until its next deployment."""
    stopped = actions.stop_environment(get_unit_of_work(), project, environment_id)
    flash(f"Environment {stopped.name} was stopped.")
    return redirect(_build_environment_url(project, stopped.reference))


@environments.post("/<int:environment_id>/delete")
@permission_required("environments.delete")
def delete(project: ProjectView, environment_id: int) -> ResponseReturnValue:
    """Delete an environment and keep its alerts."""
    try:
        deleted = actions.delete_environment(get_unit_of_work(), project, environment_id)
    except ConflictError as error:
        flash(str(error), "error")
        return redirect(_build_environment_url(project, f"~{environment_id}"))
    flash(f"Environment {deleted.name} was deleted. Its alerts are kept.")
    return redirect(url_for("environments.index", project_path=project.path))


def _build_environment_url(project: ProjectView, reference: str) -> str:
    return url_for("environments.show", project_path=project.path, reference=reference)
