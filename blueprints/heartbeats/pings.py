"""/-/ping/…: the URLs that jobs request, with the signals of Healthchecks' pinging API.

GET, HEAD and POST mean the same; a POST may carry a log.
"""

from flask import Response

from domain.heartbeats.states import PingKind
from domain.heartbeats.types import PingQuery
from web.access.marks import checks_its_url
from web.api.description.described import HEARTBEATS, TEXT, Caller, Description
from web.heartbeats.receiving import receive_ping
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.services import settings

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
    """Report that the job has started: its duration is measured, and it has to finish in time."""
    return _answer(key, PingKind.START)


@pings.route("/fail", methods=_METHODS)
@_description("fail")
@checks_its_url.but(writes=False)
def fail(key: str) -> Response:
    """Report that the job has failed, which opens an alert immediately."""
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
    """Report the exit status of the job: 0 is a success, all others are failures."""
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
