"""Every request gets an id, a log line and a count."""

import logging
from time import perf_counter
from typing import Any

from flask import Flask, Response, g, request

from domain.randomness import random_hex
from web.metrics import count_request

_log = logging.getLogger("gatebell.request")


def watch_requests(app: Flask) -> None:
    """Watch all requests of the app.

    To be called before anything else asks to see answers: Flask shows them in reverse order, so
    that this sees the answer that is really sent.
    """
    app.before_request(_begin)
    app.after_request(_end)


def _begin() -> None:
    g.request_id = random_hex(8)
    g.request_began = perf_counter()


def _end(response: Response) -> Response:
    asked, own = _behind(request), _behind(g)
    seconds = perf_counter() - own.get("request_began", perf_counter())
    # The pattern of the address and not the address: that may hold a token.
    route = asked.url_rule.rule if asked.url_rule else "(none)"
    status = response.status_code
    count_request(method=asked.method, route=route, status=status, seconds=seconds)
    fields = {
        "method": asked.method,
        "route": route,
        "status": status,
        "duration_ms": round(seconds * 1000, 1),
        "remote_address": asked.remote_addr,
    }
    _log.info("request", extra=fields)
    response.headers.add("X-Request-Id", own.get("request_id", ""))
    return response


def _behind(proxy: Any) -> Any:
    """Return what Flask's proxy stands for: each look through it costs as much as a header."""
    return proxy._get_current_object()  # noqa: SLF001 - the proxy's own
