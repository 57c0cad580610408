"""/<project>/-/heartbeats: the heartbeats of a project."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.abilities import Ability
from domain.accounts.roles import Role
from domain.database.list_queries import slice_of
from domain.database.paging import ListPart
from domain.errors import InvalidError
from domain.heartbeats import heartbeats as domain
from domain.heartbeats import log
from domain.heartbeats.heartbeats import MOST, HeartbeatView
from domain.heartbeats.snippets import ping_snippets
from domain.projects.views import ProjectView
from forms.heartbeat import HeartbeatForm, ResetUrlForm
from web.access.marks import get_current_user, project_member
from web.extensions import db
from web.heartbeats import actions
from web.http.endpoints import PageBlueprint
from web.pages.links import page_links
from web.pages.list_query import CURSORS, list_query, page_size
from web.services import now

heartbeats = PageBlueprint("heartbeats", __name__, url_prefix="/<names:project_path>/-/heartbeats")
_reader = project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
_maintainer = project_member(at_least=Role.MAINTAINER, ability=Ability.ADMIN_INTEGRATIONS)
_ONE = "/<int:heartbeat_id>"


@heartbeats.get("")
@_reader
def index(project: ProjectView) -> ResponseReturnValue:
    """List the heartbeats, those first that need somebody."""
    list_query()
    found = domain.list_heartbeats(project.id, ListPart(size=MOST), session=db.session(), now=now())
    return render_template("heartbeats/index.html", project=project, found=_by_urgency(found.items))


def _by_urgency(found: tuple[HeartbeatView, ...]) -> list[HeartbeatView]:
    order = ("down", "late", "up", "new", "paused")
    return sorted(found, key=lambda each: (order.index(each.state), each.name.lower(), each.id))


@heartbeats.route("/new", methods=["GET", "POST"])
@_maintainer
def new(project: ProjectView) -> ResponseReturnValue:
    """Create a heartbeat."""
    form = HeartbeatForm(time_zone=get_current_user().time_zone)
    if form.validate_on_submit():
        try:
            made, _ = actions.create(project, form.details)
        except InvalidError as error:
            form.object_to(error.field, str(error))
        else:
            flash("Heartbeat created. Monitoring starts with the first ping.")
            return _back_to(project, made.id)
    page = render_template("heartbeats/new.html", project=project, form=form)
    return page, 422 if form.errors else 200


@heartbeats.get(_ONE)
@_reader
def show(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Show a heartbeat with its log; maintainers see the URL and how jobs request it."""
    return _show_page(project, heartbeat_id, ResetUrlForm(formdata=None))


def _show_page(project: ProjectView, heartbeat_id: int, reset: ResetUrlForm) -> ResponseReturnValue:
    heartbeat, given = actions.get(project, heartbeat_id), list_query(*CURSORS)
    part = slice_of(given, size=page_size())
    key = actions.key_of(project, heartbeat_id) if project.can_integrate else None
    url = actions.ping_url(key.clear) if key else ""
    page = render_template(
        "heartbeats/show.html",
        project=project,
        heartbeat=heartbeat,
        page=page_links(log.recent_pings(project.id, heartbeat_id, part, session=db.session())),
        key=key,
        url=url,
        snippets=ping_snippets(url, heartbeat.schedule) if key else (),
        reset=reset,
    )
    return page, 422 if reset.errors else 200, {"Cache-Control": "no-store"}


@heartbeats.route(f"{_ONE}/edit", methods=["GET", "POST"])
@_maintainer
def edit(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Change a heartbeat."""
    heartbeat = actions.get(project, heartbeat_id)
    form = HeartbeatForm.of(heartbeat.details)
    if form.validate_on_submit():
        try:
            actions.change(project, heartbeat_id, form.details)
        except InvalidError as error:
            form.object_to(error.field, str(error))
        else:
            flash("Heartbeat saved.")
            return _back_to(project, heartbeat_id)
    page = render_template("heartbeats/edit.html", project=project, heartbeat=heartbeat, form=form)
    return page, 422 if form.errors else 200


@heartbeats.post(f"{_ONE}/pause")
@_maintainer
def pause(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Expect nothing for now."""
    actions.pause(project, heartbeat_id)
    flash("Heartbeat paused. Pings are logged, and no alert opens until you resume it.")
    return _back_to(project, heartbeat_id)


@heartbeats.post(f"{_ONE}/resume")
@_maintainer
def resume(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Expect pings again."""
    actions.resume(project, heartbeat_id)
    flash("Heartbeat resumed.")
    return _back_to(project, heartbeat_id)


@heartbeats.post(f"{_ONE}/reset_url")
@_maintainer
def reset_url(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Replace the URL; the old one is accepted for the chosen time."""
    form = ResetUrlForm()
    if not form.validate_on_submit():
        return _show_page(project, heartbeat_id, form)
    actions.reset_url(project, heartbeat_id, previous_for=form.chosen.length)
    kept = "stays valid for the chosen time" if form.chosen.length else "no longer works"
    flash(f"URL replaced. The old URL {kept}.")
    return _back_to(project, heartbeat_id)


@heartbeats.post(f"{_ONE}/delete")
@_maintainer
def delete(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Delete a heartbeat and its log."""
    removed = actions.remove(project, heartbeat_id)
    flash(f"Heartbeat {removed.name} was deleted. Its alerts are kept.")
    return redirect(url_for("heartbeats.index", project_path=project.path))


def _back_to(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    path = project.path
    return redirect(url_for("heartbeats.show", project_path=path, heartbeat_id=heartbeat_id))
