"""Pages for a project's heartbeats, and the URLs /-/ping/… that jobs request.

The ping URLs accept the signals of Healthchecks' pinging API. GET, HEAD and POST mean the same; a
POST may contain a log.
"""

from flask import Response, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.heartbeats.receiving import receive_ping
from domain.heartbeats import actions
from domain.heartbeats.snippets import ping_snippets
from domain.heartbeats.states import PingKind
from domain.heartbeats.types import PingQuery
from domain.projects.views import ProjectView
from forms.heartbeats import HeartbeatForm, ResetUrlForm
from web.access.decorators import checks_its_url, get_current_user, permitted
from web.api.description.described import HEARTBEATS, TEXT, Caller, Description
from web.http.endpoints import ErrorFormat, MachineBlueprint, PageBlueprint
from web.http.work import work
from web.pages.form_pages import form_page
from web.pages.list_query import CURSORS, asked_slice, list_query, page_links
from web.services import settings

heartbeats = PageBlueprint("heartbeats", __name__, url_prefix="/<names:project_path>/-/heartbeats")
_ONE = "/<int:heartbeat_id>"


@heartbeats.get("")
@permitted("heartbeats.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List the heartbeats; heartbeats that need attention come first."""
    list_query()
    found = actions.list_by_urgency(work(), project)
    return render_template("heartbeats/index.html", project=project, found=found)


@heartbeats.route("/new", methods=["GET", "POST"])
@permitted("heartbeats.create")
def new(project: ProjectView) -> ResponseReturnValue:
    """Create a heartbeat."""
    form = HeartbeatForm(time_zone=get_current_user().time_zone)
    made = form.carry_out(lambda: actions.create_heartbeat(work(), project, form.heartbeat()))
    if made is None:
        return form_page("heartbeats/new.html", form, project=project)
    flash("Heartbeat created. Monitoring starts with the first ping.")
    return _back_to(project, made.id)


@heartbeats.get(_ONE)
@permitted("heartbeats.show")
def show(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Show a heartbeat and its log; maintainers also see the URL and usage examples."""
    return _show_page(project, heartbeat_id, ResetUrlForm(formdata=None))


def _show_page(project: ProjectView, heartbeat_id: int, reset: ResetUrlForm) -> ResponseReturnValue:
    list_query(*CURSORS)
    heartbeat = actions.show_heartbeat(work(), project, heartbeat_id)
    pings = actions.show_log(work(), project, heartbeat_id, asked_slice())
    is_shown = project.can_integrate
    address = actions.find_address(work(), project, heartbeat_id) if is_shown else None
    page = render_template(
        "heartbeats/show.html",
        project=project,
        heartbeat=heartbeat,
        page=page_links(pings),
        address=address,
        snippets=ping_snippets(address.url, heartbeat.schedule) if address else (),
        reset=reset,
    )
    return page, 422 if reset.errors else 200, {"Cache-Control": "no-store"}


@heartbeats.route(f"{_ONE}/edit", methods=["GET", "POST"])
@permitted("heartbeats.change")
def edit(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Change a heartbeat."""
    heartbeat = actions.show_heartbeat(work(), project, heartbeat_id)
    form = HeartbeatForm.of(heartbeat)
    if form.carry_out(
        lambda: actions.change_heartbeat(work(), project, heartbeat_id, form.change())
    ):
        flash("Heartbeat saved.")
        return _back_to(project, heartbeat_id)
    return form_page("heartbeats/edit.html", form, project=project, heartbeat=heartbeat)


@heartbeats.post(f"{_ONE}/pause")
@permitted("heartbeats.pause")
def pause(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Pause a heartbeat."""
    actions.pause_heartbeat(work(), project, heartbeat_id)
    flash("Heartbeat paused. Pings are logged, but no alert opens until you resume it.")
    return _back_to(project, heartbeat_id)


@heartbeats.post(f"{_ONE}/resume")
@permitted("heartbeats.resume")
def resume(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Resume a heartbeat."""
    actions.resume_heartbeat(work(), project, heartbeat_id)
    flash("Heartbeat resumed.")
    return _back_to(project, heartbeat_id)


@heartbeats.post(f"{_ONE}/reset_url")
@permitted("heartbeats.reset_url")
def reset_url(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Replace the URL; the old URL is accepted for the chosen time."""
    form = ResetUrlForm()
    made = form.carry_out(lambda: actions.reset_url(work(), project, heartbeat_id, form.reset()))
    if made is None:
        return _show_page(project, heartbeat_id, form)
    is_kept = made.previous_url_expires_at is not None
    kept = "stays valid for the chosen time" if is_kept else "no longer works"
    flash(f"URL replaced. The old URL {kept}.")
    return _back_to(project, heartbeat_id)


@heartbeats.post(f"{_ONE}/delete")
@permitted("heartbeats.delete")
def delete(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Delete a heartbeat and its log."""
    removed = actions.delete_heartbeat(work(), project, heartbeat_id)
    flash(f"Heartbeat {removed.name} was deleted. Its alerts are kept.")
    return redirect(url_for("heartbeats.index", project_path=project.path))


def _back_to(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    path = project.path
    return redirect(url_for("heartbeats.show", project_path=path, heartbeat_id=heartbeat_id))


pings = MachineBlueprint(
    "heartbeat_pings", __name__, errors=ErrorFormat.TEXT, url_prefix="/-/ping/<key>"
)
_METHODS = ("GET", "POST")
_ERRORS = (400, 404, 408, 429)


def _description(name: str) -> Description:
    return Description(
        name=f"pings.{name}",
        tag=HEARTBEATS,
        caller=Caller.ANYONE,
        query=PingQuery,
        content_type=TEXT,
        errors=_ERRORS,
    )


@pings.route("", methods=_METHODS)
@_description("success")
@checks_its_url.but(writes=False)
def success(key: str) -> Response:
    """Report that the job has run."""
    return _answer(key, PingKind.SUCCESS)


@pings.route("/start", methods=_METHODS)
@_description("start")
@checks_its_url.but(writes=False)
def start(key: str) -> Response:
    """Report that the job has started, so that its duration is measured.

    The job has to finish in time.
    """
    return _answer(key, PingKind.START)


@pings.route("/fail", methods=_METHODS)
@_description("fail")
@checks_its_url.but(writes=False)
def fail(key: str) -> Response:
    """Report that the job has failed and open an alert.

    The alert opens immediately.
    """
    return _answer(key, PingKind.FAIL)


@pings.route("/log", methods=_METHODS)
@_description("log")
@checks_its_url.but(writes=False)
def log(key: str) -> Response:
    """Add an entry to the log, without a report about the job."""
    return _answer(key, PingKind.LOG)


@pings.route("/<int:exit_status>", methods=_METHODS)
@_description("exit_status")
@checks_its_url.but(writes=False)
def exit_status(key: str, exit_status: int) -> Response:
    """Report the exit status of the job, where only 0 is a success."""
    kind = PingKind.FAIL if exit_status else PingKind.SUCCESS
    return _answer(key, kind, exit_status)


def _answer(key: str, kind: PingKind, status: int | None = None) -> Response:
    body = receive_ping(key, kind, status)
    response = Response("OK", mimetype="text/plain")
    response.headers["Ping-Body-Limit"] = str(settings().heartbeat_body_limit_bytes)
    response.headers["Access-Control-Allow-Origin"] = "*"
    response.headers["Cache-Control"] = "no-store"
    if body.has_more:
        response.headers["Connection"] = "close"
    return response
