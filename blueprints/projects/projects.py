"""Project pages: creation, overview, settings and members."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from flask import current_app, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RequestRedirect

from blueprints.git.commits import build_clone_url
from blueprints.projects.member_pages import add_member_pages, share, unshare
from domain.access.features import Feature
from domain.accounts.names import is_valid_path
from domain.alerts.integrations.delivery_counts import count_deliveries_by_hour
from domain.alerts.integrations.integrations import list_integrations
from domain.alerts.listing.filters import AlertFilter
from domain.alerts.listing.hourly_counts import count_alerts_by_hour
from domain.alerts.listing.project_selection import build_single_project_query
from domain.alerts.listing.queries import count_alerts_by_status, list_open_alerts
from domain.core.errors import ForbiddenError, NotFoundError
from domain.git.access import can_push
from domain.paging.escalations.reporting.explanation import find_unanswered_alerts
from domain.paging.escalations.routes import has_no_applicable_policy
from domain.paging.on_call.shifts import list_schedules_on_call
from domain.paging.page_digests.alerts import find_alerts_digest
from domain.paging.page_digests.projects import find_on_call_digest_inputs
from domain.paging.silences.active_mutes import find_active_mutes, find_mutes_for_listed_alerts
from domain.projects import project_actions as actions
from domain.projects.access import get_group, get_project, resolve_project
from domain.projects.my_projects import list_groups_for_new_projects, search_projects
from domain.projects.namespace_changes import ReservedNames
from domain.projects.namespace_lists import ProjectFilter, add_subgroups
from domain.projects.paths import MovedError
from domain.projects.types import NewProject, ProjectChange
from domain.projects.views import GroupView, ProjectView
from domain.releases.schedule import CHANGES_BY_ID
from forms.projects import ProjectForm, ProjectSettingsForm
from web.access.decorators import (
    get_current_user,
    get_request_viewer,
    open_to_anyone,
    permission_required,
    sign_in_required,
)
from web.access.return_urls import shorten_return_url
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.public_urls import add_base_path, get_current_path_and_query
from web.http.unit_of_work import get_unit_of_work
from web.http.url_converters import is_receiver_read_request
from web.pages.form_pages import render_form_page
from web.pages.list_query import build_numbered_page_links, get_list_query, get_page_request
from web.pages.live_pages import render_live_page
from web.releases.gate import apply_change
from web.services import get_current_time, get_git, get_parser_settings

_LEGACY_URL_CHANGE = CHANGES_BY_ID["legacy-page-urls"]
#: Minimum number of path segments. A project is always in a group.
_MIN_PATH_SEGMENTS = 2


def redirect_legacy_url(
    path: str, *, sees_project: Callable[[str], bool]
) -> ResponseReturnValue | None:
    """Redirect a legacy URL to the current page.

    Return None if the path is not a legacy URL or the visitor cannot see the project. `path` has no
    leading slash. Raise NotFoundError from release 16.0 on.
    """
    for project, page in _list_project_path_candidates(path):
        if _is_page_url(page) and sees_project(project):
            apply_change(_LEGACY_URL_CHANGE)
            query = request.query_string.decode("latin-1")
            return redirect(add_base_path(page) + (f"?{query}" if query else ""))
    return None


def _list_project_path_candidates(path: str) -> Iterator[tuple[str, str]]:
    """Yield each prefix that can be a project's path, with the current URL of the page.

    The current URL contains `/-/` after the project's path.
    """
    parts = path.split("/")
    for count in range(_MIN_PATH_SEGMENTS, len(parts)):
        project = "/".join(parts[:count])
        yield project, f"/{project}/-/{'/'.join(parts[count:])}"


def _is_page_url(path: str) -> bool:
    adapter = current_app.create_url_adapter(request)
    if adapter is None:
        return False
    try:
        adapter.match(path, method="GET")
    except RequestRedirect:
        return True
    except HTTPException:
        return False
    return True


projects = PageBlueprint("projects", __name__)
_MAX_ALERTS = 10
#: Maximum number of groups in the selection list. A link on a group's page selects any group.
_MAX_GROUPS = 200


@projects.route("/projects/new", methods=["GET", "POST"])
@sign_in_required
def new() -> ResponseReturnValue:
    """Create a project in a group that the user maintains, or in their own namespace."""
    form = _build_form()
    try:
        made = form.run_if_valid(
            lambda: actions.create_project(get_unit_of_work(), _build_new_project(form))
        )
    except (NotFoundError, ForbiddenError) as error:
        form.add_error("name", str(error))
        made = None
    if made is None:
        return _render_new_page(form)
    path = made.path_with_namespace
    flash(f"Project {path} created. Next, connect a monitoring system.")
    return redirect(url_for("gallery.index", project_path=path))


def _build_new_project(form: ProjectForm) -> NewProject:
    """Build the new project from the form, in a group or in the user's own namespace."""
    group, path = None, form.group.data
    if path != get_current_user().username:
        group = get_group(path, get_request_viewer(), session=db.session()).id
    return form.build_entered_body(NewProject, path=form.name.data, name="", namespace_id=group)


def _build_form() -> ProjectForm:
    chosen = request.form.get("group") or request.args.get("group")
    mine = list_groups_for_new_projects(
        get_request_viewer(), chosen=chosen, maximum=_MAX_GROUPS, session=db.session()
    )
    username = get_current_user().username
    own = () if username.lower() in get_unit_of_work().policy(ReservedNames).names else (username,)
    return ProjectForm(groups=mine, own=own, group=request.args.get("group"))


def _render_new_page(form: ProjectForm) -> ResponseReturnValue:
    return render_form_page("projects/new.html", form)


@projects.get("/<names:full_path>")
@open_to_anyone
def show_namespace(full_path: str) -> ResponseReturnValue:
    """Show the group or project with the given full path."""
    try:
        return _render_namespace(full_path)
    except MovedError:
        raise
    except NotFoundError:
        if page := redirect_legacy_url(full_path, sees_project=_can_see_project):
            return page
        # An anonymous visitor may be a member, and redirecting to the sign-in page does not reveal
        # which paths exist. The URL of a receiver may contain a key, which must not be passed to
        # the sign-in page.
        is_page = is_valid_path(full_path) and not is_receiver_read_request()
        if current_user.is_authenticated or not is_page:
            raise NotFoundError("Page not found.") from None
        return redirect(
            url_for("sessions.sign_in", next=shorten_return_url(get_current_path_and_query()))
        )


def _can_see_project(project_path: str) -> bool:
    try:
        resolve_project(project_path, get_request_viewer(), session=db.session())
    except NotFoundError:
        return False
    return True


def _render_namespace(full_path: str) -> ResponseReturnValue:
    try:
        project = get_project(full_path, get_request_viewer(), session=db.session())
    except MovedError:
        raise
    except NotFoundError:
        return _render_group(get_group(full_path, get_request_viewer(), session=db.session()))
    if not project.can_see_alerts:
        return _render_project(project)
    on_call = find_on_call_digest_inputs(get_unit_of_work(), project)
    mark = find_alerts_digest(
        [project.id], project, on_call, session=db.session(), now=get_current_time()
    )
    return render_live_page(mark, lambda: _render_project(project))


def _render_project(project: ProjectView) -> ResponseReturnValue:
    sees_integrations = project.has_feature(Feature.MONITOR) and (
        project.has_developer_role or project.can_manage_integrations
    )
    return render_template(
        "projects/show.html",
        project=project,
        integrations=list_integrations(get_unit_of_work(), project) if sees_integrations else (),
        hours=count_deliveries_by_hour(project.id, session=db.session(), now=get_current_time())
        if sees_integrations
        else {},
        sees_integrations=sees_integrations,
        **_build_alerts_context(project),
        clone_url=build_clone_url(project),
        may_push=can_push(project),
        git_problem=get_git().find_problem(),
    )


def _build_alerts_context(project: ProjectView) -> dict[str, Any]:
    """Return the template variables about alerts, which are empty if the user cannot see alerts."""
    if not project.can_see_alerts:
        return {"open_alerts": (), "counts": {}, "on_call": ()}
    session = db.session()
    alerts = list_open_alerts(
        build_single_project_query(project.id), limit=_MAX_ALERTS, session=session
    )
    return {
        "open_alerts": alerts,
        "mutes": find_mutes_for_listed_alerts(
            alerts,
            moment=get_current_time(),
            session=session,
            parser_settings=get_parser_settings(),
        ),
        "unanswered": find_unanswered_alerts([alert.id for alert in alerts], session=session),
        "in_force": find_active_mutes([project], moment=get_current_time(), session=session),
        "counts": _count_alerts(project),
        "strips": _count_alerts_by_hour([project]),
        "on_call": list_schedules_on_call(get_unit_of_work(), project),
        "pages_nobody": project.can_maintain
        and has_no_applicable_policy(project.id, session=session),
    }


def _render_group(group: GroupView) -> ResponseReturnValue:
    get_list_query("page")
    part, session = get_page_request(order_by="path"), db.session()
    inside = ProjectFilter(group_id=group.id)
    projects = search_projects(inside, part, get_request_viewer(), session=session)
    return render_template(
        "groups/show.html",
        group=add_subgroups(group, session=session),
        projects=projects.items,
        in_force=find_active_mutes(projects.items, moment=get_current_time(), session=session),
        strips=_count_alerts_by_hour(projects.items),
        total=projects.total,
        page=build_numbered_page_links(projects, part),
    )


def _count_alerts_by_hour(shown: Iterable[ProjectView]) -> Mapping[int, Sequence[int]]:
    """Count the alerts from the last 24 hours in each project whose alerts the user can see."""
    ids = [each.id for each in shown if each.can_see_alerts]
    return count_alerts_by_hour(ids, session=db.session(), now=get_current_time())


def _count_alerts(project: ProjectView) -> dict[str, int]:
    return count_alerts_by_status(AlertFilter(project_id=project.id), session=db.session())


@projects.route("/<names:project_path>/-/settings/general", methods=["GET", "POST"])
@permission_required("projects.change")
def general(project: ProjectView) -> ResponseReturnValue:
    """Change the project's name, description, visibility and enabled features."""
    form = ProjectSettingsForm.from_project(project)
    changed = form.run_if_valid(
        lambda: actions.change_project(
            get_unit_of_work(), project, form.build_entered_body(ProjectChange)
        )
    )
    if changed is None:
        return render_form_page("projects/general.html", form, project=project)
    is_same = changed == actions.show_project(get_unit_of_work(), project)
    flash("Nothing was changed." if is_same else "Settings saved.")
    return redirect(url_for("projects.general", project_path=project.path))


@projects.post("/<names:project_path>/-/settings/archive")
@permission_required("projects.archive")
def archive(project: ProjectView) -> ResponseReturnValue:
    """Archive the project, so that it accepts no changes, pushes or alerts."""
    actions.archive_project(get_unit_of_work(), project)
    flash("Project archived. It no longer accepts changes, pushes or alerts.")
    return redirect(url_for("projects.general", project_path=project.path))


@projects.post("/<names:project_path>/-/settings/unarchive")
@permission_required("projects.unarchive")
def unarchive(project: ProjectView) -> ResponseReturnValue:
    """Unarchive the project, so that it accepts changes and alerts again."""
    actions.unarchive_project(get_unit_of_work(), project)
    flash("Project unarchived. It accepts changes, pushes and alerts again.")
    return redirect(url_for("projects.general", project_path=project.path))


add_member_pages(projects, "/<names:project_path>/-/settings/members")
projects.post("/<names:project_path>/-/settings/members/groups")(share)
projects.post("/<names:project_path>/-/settings/members/groups/<int:group_id>/remove")(unshare)
