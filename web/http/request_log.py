"""Request IDs, log lines and metrics for all requests."""

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any

from flask import Response, g, has_app_context
from flask.globals import app_ctx, request_ctx

from domain.core.clock import read_system_clock
from domain.core.randomness import generate_random_hex
from web.http.endpoints import START_TIME_KEY
from web.logging import JsonFormatter, format_json_line, uses_json_log
from web.metrics import count_http_request
from web.settings.environment import Settings

_log = logging.getLogger("gatebell.request")
_MESSAGE = "Request completed."
_EVENT = "request.completed"
_LineWriter = Callable[[dict[str, Any]], None]


def add_request_ids_to_log() -> None:
    """Add the ID of the current request to each log line in JSON."""
    JsonFormatter.find_request_id = staticmethod(_find_request_id)


def build_log_hook(settings: Settings) -> Callable[[Response], Response]:
    """Return the hook that logs and counts the final response to each request."""
    return partial(
        _log_and_count_response,
        write=_write_json_line if uses_json_log(settings) else _write_log_record,
    )


def _find_request_id() -> str:
    return g.get("request_id", "") if has_app_context() else ""


def store_request_start() -> None:
    """Store the ID and the start time of the current request."""
    g.request_id = generate_random_hex(8)
    g.request_began = request_ctx.request.environ.get(START_TIME_KEY) or perf_counter()


def _log_and_count_response(response: Response, *, write: _LineWriter) -> Response:
    # Access through Flask's proxies is slow, so each value is read once.
    asked, own = request_ctx.request, app_ctx.g
    seconds = perf_counter() - own.get("request_began", perf_counter())
    # The path may contain a token, so the route is logged instead.
    route = asked.url_rule.rule if asked.url_rule else "(none)"
    status = response.status_code
    count_http_request(method=asked.method, route=route, status=status, seconds=seconds)
    fields = {
        "method": asked.method,
        "route": route,
        "status": status,
        "duration_ms": round(seconds * 1000, 1),
        "remote_address": asked.remote_addr,
    }
    if _log.isEnabledFor(logging.INFO):
        write(fields)
    response.headers.add("X-Request-Id", own.get("request_id", ""))
    return response


def _write_log_record(fields: dict[str, Any]) -> None:
    _log.info(_MESSAGE, extra={"event": _EVENT, **fields})


def _write_json_line(fields: dict[str, Any]) -> None:
    """Write a JSON log line to standard error, without creating a log record.

    Creating a log record would take three times as long.
    """
    moment = read_system_clock().isoformat()
    said = {"time": moment, "level": "INFO", "logger": _log.name, "message": _MESSAGE}
    line = format_json_line(
        {**said, "event": _EVENT, **fields, "request_id": g.get("request_id", "")}
    )
    with suppress(OSError, ValueError):  # a full or closed log must not make the request fail
        sys.stderr.write(f"{line}\n")
