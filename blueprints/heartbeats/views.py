"""Pages for a project's heartbeats, and the ping URLs under /-/ping that jobs request.

The ping URLs accept the signals of Healthchecks' pinging API. GET, HEAD and POST have the same
effect, but only a POST may contain a log.
"""

from flask import Response, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.heartbeats.pings import receive_ping
from domain.heartbeats import actions
from domain.heartbeats.snippets import build_ping_snippets
from domain.heartbeats.states import PingKind
from domain.heartbeats.types import PingQuery
from domain.paging.page_digests.projects import find_heartbeats_digest
from domain.projects.views import ProjectView
from forms.heartbeats import HeartbeatForm, ResetUrlForm
from web.access.decorators import authenticates_heartbeat_url, get_current_user, permission_required
from web.api.openapi.view_descriptions import HEARTBEATS, TEXT, Caller, ViewDescription
from web.extensions import db
from web.http.endpoints import ApiClientBlueprint, ErrorFormat, PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    build_page_links,
    get_list_query,
    get_requested_keyset_range,
)
from web.pages.live_pages import render_live_page
from web.services import get_settings

heartbeats = PageBlueprint("heartbeats", __name__, url_prefix="/<names:project_path>/-/heartbeats")
_HEARTBEAT_PATH = "/<int:heartbeat_id>"


@heartbeats.get("")
@permission_required("heartbeats.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List the heartbeats, with heartbeats that need attention first."""
    get_list_query()
    return render_live_page(
        find_heartbeats_digest(project, session=db.session()),
        lambda: render_template(
            "heartbeats/index.html",
            project=project,
            found=actions.list_heartbeats_by_urgency(get_unit_of_work(), project),
        ),
    )


@heartbeats.route("/new", methods=["GET", "POST"])
@permission_required("heartbeats.create")
def new(project: ProjectView) -> ResponseReturnValue:
    """Create a heartbeat."""
    form = HeartbeatForm(time_zone=get_current_user().time_zone)
    made = form.run_if_valid(
        lambda: actions.create_heartbeat(get_unit_of_work(), project, form.build_heartbeat())
    )
    if made is None:
        return render_form_page("heartbeats/new.html", form, project=project)
    flash("Heartbeat created. Monitoring starts with the first ping.")
    return _redirect_to_heartbeat(project, made.id)


@heartbeats.get(_HEARTBEAT_PATH)
@permission_required("heartbeats.show")
def show(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Show a heartbeat and its log.

    Maintainers also see the URL and usage examples.
    """
    actions.show_heartbeat(get_unit_of_work(), project, heartbeat_id)
    return render_live_page(
        find_heartbeats_digest(project, heartbeat_id, session=db.session()),
        lambda: _render_heartbeat_page(project, heartbeat_id, ResetUrlForm(formdata=None)),
    )


def _render_heartbeat_page(
    project: ProjectView, heartbeat_id: int, reset: ResetUrlForm
) -> ResponseReturnValue:
    get_list_query(*CURSOR_PARAMETERS)
    heartbeat = actions.show_heartbeat(get_unit_of_work(), project, heartbeat_id)
    pings = actions.fetch_ping_page(
        get_unit_of_work(), project, heartbeat_id, get_requested_keyset_range()
    )
    address = None
    if project.can_manage_integrations:
        address = actions.get_heartbeat_url(get_unit_of_work(), project, heartbeat_id)
    page = render_template(
        "heartbeats/show.html",
        project=project,
        heartbeat=heartbeat,
        page=build_page_links(pings),
        address=address,
        snippets=build_ping_snippets(address.url, heartbeat.schedule) if address else (),
        reset=reset,
    )
    return page, 422 if reset.errors else 200, {"Cache-Control": "no-store"}


@heartbeats.route(f"{_HEARTBEAT_PATH}/edit", methods=["GET", "POST"])
@permission_required("heartbeats.change")
def edit(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Change the settings of a heartbeat."""
    heartbeat = actions.show_heartbeat(get_unit_of_work(), project, heartbeat_id)
    form = HeartbeatForm.from_heartbeat(heartbeat)
    if form.run_if_valid(
        lambda: actions.change_heartbeat(
            get_unit_of_work(), project, heartbeat_id, form.build_change()
        )
    ):
        flash("Heartbeat saved.")
        return _redirect_to_heartbeat(project, heartbeat_id)
    return render_form_page("heartbeats/edit.html", form, project=project, heartbeat=heartbeat)


@heartbeats.post(f"{_HEARTBEAT_PATH}/pause")
@permission_required("heartbeats.pause")
def pause(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Pause a heartbeat and resolve its open alert.

    While a heartbeat is paused, its pings are only logged.
    """
    actions.pause_heartbeat(get_unit_of_work(), project, heartbeat_id)
    flash("Heartbeat paused. Pings are logged, but no alert opens until you resume it.")
    return _redirect_to_heartbeat(project, heartbeat_id)


@heartbeats.post(f"{_HEARTBEAT_PATH}/resume")
@permission_required("heartbeats.resume")
def resume(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Resume a paused heartbeat, so that it can open alerts again."""
    actions.resume_heartbeat(get_unit_of_work(), project, heartbeat_id)
    flash("Heartbeat resumed.")
    return _redirect_to_heartbeat(project, heartbeat_id)


@heartbeats.post(f"{_HEARTBEAT_PATH}/reset_url")
@permission_required("heartbeats.reset_url")
def reset_url(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Replace the heartbeat's ping URL.

    The previous URL is accepted for the chosen time.
    """
    form = ResetUrlForm()
    made = form.run_if_valid(
        lambda: actions.reset_url(get_unit_of_work(), project, heartbeat_id, form.build_reset())
    )
    if made is None:
        return _render_heartbeat_page(project, heartbeat_id, form)
    is_kept = made.previous_url_expires_at is not None
    kept = "stays valid for the chosen time" if is_kept else "no longer works"
    flash(f"URL replaced. The old URL {kept}.")
    return _redirect_to_heartbeat(project, heartbeat_id)


@heartbeats.post(f"{_HEARTBEAT_PATH}/delete")
@permission_required("heartbeats.delete")
def delete(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    """Delete a heartbeat and its log."""
    removed = actions.delete_heartbeat(get_unit_of_work(), project, heartbeat_id)
    flash(f"Heartbeat {removed.name} was deleted. Its alerts are kept.")
    return redirect(url_for("heartbeats.index", project_path=project.path))


def _redirect_to_heartbeat(project: ProjectView, heartbeat_id: int) -> ResponseReturnValue:
    path = project.path
    return redirect(url_for("heartbeats.show", project_path=path, heartbeat_id=heartbeat_id))


pings = ApiClientBlueprint(
    "heartbeat_pings", __name__, errors=ErrorFormat.TEXT, url_prefix="/-/ping/<key>"
)
_PING_METHODS = ("GET", "POST")


def _describe_ping_url(name: str) -> ViewDescription:
    return ViewDescription(
        name=f"pings.{name}",
        tag=HEARTBEATS,
        caller=Caller.ANYONE,
        query=PingQuery,
        content_type=TEXT,
        errors=(400, 404, 408, 429),
    )


@pings.route("", methods=_PING_METHODS)
@_describe_ping_url("success")
@authenticates_heartbeat_url.with_changes(writes=False)
def success(key: str) -> Response:
    """Report that the job has succeeded."""
    return _receive_and_respond(key, PingKind.SUCCESS)


@pings.route("/start", methods=_PING_METHODS)
@_describe_ping_url("start")
@authenticates_heartbeat_url.with_changes(writes=False)
def start(key: str) -> Response:
    """Report that the job has started.

    The service measures the duration of the run, and opens an alert if the job does not finish in
    time.
    """
    return _receive_and_respond(key, PingKind.START)


@pings.route("/fail", methods=_PING_METHODS)
@_describe_ping_url("fail")
@authenticates_heartbeat_url.with_changes(writes=False)
def fail(key: str) -> Response:
    """Report that the job has failed, and open an alert.

    The alert opens immediately.
    """
    return _receive_and_respond(key, PingKind.FAIL)


@pings.route("/log", methods=_PING_METHODS)
@_describe_ping_url("log")
@authenticates_heartbeat_url.with_changes(writes=False)
def log(key: str) -> Response:
    """Add an entry to the log without changing the status of the heartbeat."""
    return _receive_and_respond(key, PingKind.LOG)


@pings.route("/<int:exit_status>", methods=_PING_METHODS)
@_describe_ping_url("exit_status")
@authenticates_heartbeat_url.with_changes(writes=False)
def exit_status(key: str, exit_status: int) -> Response:
    """Report the exit status of the job, where 0 means success."""
    kind = PingKind.FAIL if exit_status else PingKind.SUCCESS
    return _receive_and_respond(key, kind, exit_status)


def _receive_and_respond(key: str, kind: PingKind, status: int | None = None) -> Response:
    body = receive_ping(key, kind, status)
    response = Response("OK", mimetype="text/plain")
    response.headers["Ping-Body-Limit"] = str(get_settings().heartbeat_body_limit_bytes)
    response.headers["Access-Control-Allow-Origin"] = "*"
    response.headers["Cache-Control"] = "no-store"
    if body.has_more:
        response.headers["Connection"] = "close"
    return response
