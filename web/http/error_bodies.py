"""Errors in the formats of other protocols: plain sentences, Docker's registry, PagerDuty."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from flask import Response, json
from werkzeug.http import HTTP_STATUS_CODES

_REGISTRY_CODES = {
    400: "UNSUPPORTED",
    401: "UNAUTHORIZED",
    403: "DENIED",
    404: "UNSUPPORTED",
    405: "UNSUPPORTED",
    422: "UNSUPPORTED",
    429: "TOOMANYREQUESTS",
    503: "UNAVAILABLE",
}


def as_sentence(status: int, sentence: str | None, headers: Mapping[str, str]) -> Response:
    """Render an error as a sentence."""
    words = sentence or HTTP_STATUS_CODES.get(status, "Error")
    return Response(f"{words}\n", status, headers=dict(headers), mimetype="text/plain")


def for_registry(status: int, sentence: str | None, headers: Mapping[str, str]) -> Response:
    """Render an error as clients of Docker's registry show it (HTTP API V2, Errors)."""
    text = sentence or HTTP_STATUS_CODES.get(status, "Error")
    body = {"errors": [{"code": _REGISTRY_CODES.get(status, "UNKNOWN"), "message": text}]}
    return written_json(body, status, {**headers, "Cache-Control": "no-store"})


def for_event(
    status: int, sentence: str | None, headers: Mapping[str, str], extra: Mapping[str, Any]
) -> Response:
    """Render an error as PagerDuty's Events API v2 does; its clients know 400, 429 and 5xx."""
    said = sentence or HTTP_STATUS_CODES.get(status, "Error")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return written_json({"status": "throttle exceeded", "message": said}, status, headers)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return written_json({"status": "error", "message": said}, status, headers)
    problems = extra.get("errors") or [said]
    body = {"status": "invalid event", "message": "Event object is invalid", "errors": problems}
    return written_json(body, status if status in _EVENT_STATUSES else 400, headers)


#: Others of the caller's mistakes are 400 there.
_EVENT_STATUSES = frozenset({405, 408, 413})


def written_json(body: Mapping[str, Any], status: int, headers: Mapping[str, str]) -> Response:
    """Return an error as JSON."""
    response = Response(json.dumps(body), status=status, mimetype="application/json")
    response.headers.update(headers)
    return response
