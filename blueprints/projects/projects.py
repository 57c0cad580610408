"""Project pages: creation, overview, settings and members."""

from collections.abc import Callable, Iterator
from typing import Any

from flask import current_app, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RequestRedirect

from blueprints.git.commits import clone_url
from blueprints.projects.member_pages import add_member_pages, share, unshare
from domain.access.features import Feature
from domain.accounts.names import can_be_path
from domain.alerts.integrations.integrations import list_integrations
from domain.alerts.listing.filters import AlertFilter
from domain.alerts.listing.queries import count_by_status, open_alerts
from domain.alerts.listing.watched_projects import only
from domain.core.errors import ForbiddenError, NotFoundError
from domain.git.access import may_push
from domain.paging.escalations.explanation import unanswered_among
from domain.paging.escalations.routes import pages_nobody
from domain.paging.on_call.shifts import on_call_in_project
from domain.paging.silences.muting import in_force, muted_rows
from domain.projects import project_actions as actions
from domain.projects.access import follow_to_project, get_group, get_project
from domain.projects.creation import ReservedNames
from domain.projects.listing import (
    ProjectFilter,
    groups_to_create_in,
    search_projects,
    with_subgroups,
)
from domain.projects.paths import MovedError
from domain.projects.types import NewProject, ProjectChange
from domain.projects.views import GroupView, ProjectView
from domain.releases.schedule import BY_ID
from forms.projects import ProjectForm, ProjectSettingsForm
from web.access.decorators import (
    get_current_user,
    open_to_anyone,
    permitted,
    signed_in,
    viewer,
)
from web.access.kept_pages import short_address
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.public_urls import current_path, with_base_path
from web.http.routes import is_read_of_receiver
from web.http.work import work
from web.pages.form_pages import form_page
from web.pages.list_query import asked_part, list_query, numbered_links
from web.releases.gate import apply_change
from web.services import git, now, reading

_CHANGE = BY_ID["legacy-page-urls"]
#: Minimum number of path segments. A project is always in a group.
_LEAST_PARTS = 2


def lead_on(path: str, *, sees_project: Callable[[str], bool]) -> ResponseReturnValue | None:
    """Redirect a legacy URL to the current page.

    Return None if the path is not a legacy URL or the visitor cannot see the project. `path` has no
    leading slash. Raise NotFoundError from release 16.0 on.
    """
    for project, page in _candidates(path):
        if _is_page(page) and sees_project(project):
            apply_change(_CHANGE)
            query = request.query_string.decode("latin-1")
            return redirect(with_base_path(page) + (f"?{query}" if query else ""))
    return None


def _candidates(path: str) -> Iterator[tuple[str, str]]:
    """Yield each prefix that can be a project's path, and the URL with `/-/` after it."""
    parts = path.split("/")
    for count in range(_LEAST_PARTS, len(parts)):
        project = "/".join(parts[:count])
        yield project, f"/{project}/-/{'/'.join(parts[count:])}"


def _is_page(path: str) -> bool:
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
_MOST_ALERTS = 10
#: Maximum number of groups in the choice list. A group's page links to a form with that group.
_MOST_GROUPS = 200


@projects.route("/projects/new", methods=["GET", "POST"])
@signed_in
def new() -> ResponseReturnValue:
    """Create a project in a group that the user maintains, or in their own namespace."""
    form = _new_form()
    try:
        made = form.carry_out(lambda: actions.create_project(work(), _new_project(form)))
    except (NotFoundError, ForbiddenError) as error:
        form.object_to("name", str(error))
        made = None
    if made is None:
        return _new_page(form)
    path = made.path_with_namespace
    flash(f"Project {path} created. Next, connect a monitoring system.")
    return redirect(url_for("integrations.new", project_path=path))


def _new_project(form: ProjectForm) -> NewProject:
    """Return the project that the form describes, in a group or in the user's own namespace."""
    group, path = None, form.group.data
    if path != get_current_user().username:
        group = get_group(path, viewer(), session=db.session()).id
    return form.read(NewProject, path=form.name.data, name="", namespace_id=group)


def _new_form() -> ProjectForm:
    chosen = request.form.get("group") or request.args.get("group")
    mine = groups_to_create_in(viewer(), chosen=chosen, most=_MOST_GROUPS, session=db.session())
    username = get_current_user().username
    own = () if username.lower() in work().policy(ReservedNames).names else (username,)
    return ProjectForm(groups=mine, own=own, group=request.args.get("group"))


def _new_page(form: ProjectForm) -> ResponseReturnValue:
    return form_page("projects/new.html", form)


@projects.get("/<names:full_path>")
@open_to_anyone
def show_namespace(full_path: str) -> ResponseReturnValue:
    """Show the group or project with a full path."""
    try:
        return _show(full_path)
    except MovedError:
        raise
    except NotFoundError:
        if page := lead_on(full_path, sees_project=_sees):
            return page
        # An anonymous visitor may be a member, and redirecting to the sign-in page does not reveal
        # which paths exist. The URL of a receiver may contain a key, which the sign-in page must
        # not get.
        is_page = can_be_path(full_path) and not is_read_of_receiver()
        if current_user.is_authenticated or not is_page:
            raise
        return redirect(url_for("sessions.sign_in", next=short_address(current_path())))


def _sees(project_path: str) -> bool:
    try:
        follow_to_project(project_path, viewer(), session=db.session())
    except NotFoundError:
        return False
    return True


def _show(full_path: str) -> ResponseReturnValue:
    try:
        project = get_project(full_path, viewer(), session=db.session())
    except MovedError:
        raise
    except NotFoundError:
        return _show_group(get_group(full_path, viewer(), session=db.session()))
    return _show_project(project)


def _show_project(project: ProjectView) -> ResponseReturnValue:
    sees_integrations = project.has(Feature.MONITOR) and (
        project.can_develop or project.can_integrate
    )
    return render_template(
        "projects/show.html",
        project=project,
        integrations=list_integrations(work(), project) if sees_integrations else (),
        sees_integrations=sees_integrations,
        **_alerts_of(project),
        clone_url=clone_url(project),
        may_push=may_push(project),
        git_problem=git().problem(),
    )


def _alerts_of(project: ProjectView) -> dict[str, Any]:
    """Return the alert variables of the overview for users who may see alerts."""
    if not project.shows_alerts:
        return {"open_alerts": (), "counts": {}, "on_call": ()}
    session = db.session()
    alerts = open_alerts(only(project.id), limit=_MOST_ALERTS, session=session)
    return {
        "open_alerts": alerts,
        "mutes": muted_rows(alerts, at=now(), session=session, reading=reading()),
        "unanswered": unanswered_among([alert.id for alert in alerts], session=session),
        "in_force": in_force([project], at=now(), session=session),
        "counts": _counts(project),
        "on_call": on_call_in_project(work(), project),
        "pages_nobody": project.can_maintain and pages_nobody(project.id, session=session),
    }


def _show_group(group: GroupView) -> ResponseReturnValue:
    list_query("page")
    part, session = asked_part(order_by="path"), db.session()
    inside = ProjectFilter(group_id=group.id)
    projects = search_projects(inside, part, viewer(), session=session)
    return render_template(
        "groups/show.html",
        group=with_subgroups(group, session=session),
        projects=projects.items,
        in_force=in_force(projects.items, at=now(), session=session),
        total=projects.total,
        page=numbered_links(projects, part),
    )


def _counts(project: ProjectView) -> dict[str, int]:
    return count_by_status(AlertFilter(project_id=project.id), session=db.session())


@projects.route("/<names:project_path>/-/settings/general", methods=["GET", "POST"])
@permitted("projects.change")
def general(project: ProjectView) -> ResponseReturnValue:
    """Change the project's name, description, visibility and enabled features."""
    form = ProjectSettingsForm.of(project)
    changed = form.carry_out(
        lambda: actions.change_project(work(), project, form.read(ProjectChange))
    )
    if changed is None:
        return form_page("projects/general.html", form, project=project)
    is_same = changed == actions.show_project(work(), project)
    flash("Nothing was changed." if is_same else "Settings saved.")
    return redirect(url_for("projects.general", project_path=project.path))


@projects.post("/<names:project_path>/-/settings/archive")
@permitted("projects.archive")
def archive(project: ProjectView) -> ResponseReturnValue:
    """Archive the project."""
    actions.archive(work(), project)
    flash("Project archived. It no longer accepts changes, pushes or alerts.")
    return redirect(url_for("projects.general", project_path=project.path))


@projects.post("/<names:project_path>/-/settings/unarchive")
@permitted("projects.unarchive")
def unarchive(project: ProjectView) -> ResponseReturnValue:
    """Unarchive the project, so that it accepts changes and alerts again."""
    actions.unarchive(work(), project)
    flash("Project unarchived. It accepts changes, pushes and alerts again.")
    return redirect(url_for("projects.general", project_path=project.path))


add_member_pages(projects, "/<names:project_path>/-/settings/members")
projects.post("/<names:project_path>/-/settings/members/groups")(share)
projects.post("/<names:project_path>/-/settings/members/groups/<int:group_id>/remove")(unshare)
