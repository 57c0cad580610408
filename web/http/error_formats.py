"""Error formats of pages, plain text, OAuth, Docker's registry and PagerDuty."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from flask import Response, g, make_response, render_template, request
from werkzeug.http import HTTP_STATUS_CODES

from web.http.error_texts import ERROR_PAGE_TEXTS, INVALID_QUERY_TEXTS
from web.http.json_responses import build_json_response
from web.http.public_urls import add_base_path, find_parent_list_link
from web.http.url_converters import list_existing_methods
from web.services import get_settings

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


def render_plain_text_error(
    status: int, sentence: str | None, headers: Mapping[str, str]
) -> Response:
    """Render an error as a plain-text message."""
    words = sentence or HTTP_STATUS_CODES.get(status, "Error")
    return Response(f"{words}\n", status, headers=dict(headers), mimetype="text/plain")


def render_registry_error(
    status: int, sentence: str | None, headers: Mapping[str, str]
) -> Response:
    """Render an error in the format of Docker's registry (HTTP API V2, Errors)."""
    text = sentence or HTTP_STATUS_CODES.get(status, "Error")
    body = {"errors": [{"code": _REGISTRY_CODES.get(status, "UNKNOWN"), "message": text}]}
    return render_json_error(body, status, {**headers, "Cache-Control": "no-store"})


def render_pagerduty_error(
    status: int, sentence: str | None, headers: Mapping[str, str], extra: Mapping[str, Any]
) -> Response:
    """Render an error in the format of PagerDuty's Events API v2.

    Clients of that API handle only the statuses 400, 429 and 5xx.
    """
    said = sentence or HTTP_STATUS_CODES.get(status, "Error")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return render_json_error({"status": "throttle exceeded", "message": said}, status, headers)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return render_json_error({"status": "error", "message": said}, status, headers)
    problems = extra.get("errors") or [said]
    body = {"status": "invalid event", "message": "Event object is invalid", "errors": problems}
    return render_json_error(body, status if status in _EVENT_STATUSES else 400, headers)


#: Statuses that are kept in PagerDuty's format. Other client errors become 400.
_EVENT_STATUSES = frozenset({405, 408, 413})


def render_json_error(body: Mapping[str, Any], status: int, headers: Mapping[str, str]) -> Response:
    """Return an error as JSON, with straight quotes in its messages."""
    response = build_json_response(_convert_to_plain_value(body), status)
    response.headers.update(headers)
    return response


#: Translation from the quotes on web pages to straight quotes for API clients and their logs.
_STRAIGHT_QUOTES = str.maketrans({"“": '"', "”": '"'})


def _convert_to_plain_value(value: Any) -> Any:
    """Return a value that orjson can encode, with U+FFFD in place of lone surrogates."""
    if isinstance(value, str):
        return (
            value.encode("utf-8", "surrogatepass")
            .decode("utf-8", "replace")
            .translate(_STRAIGHT_QUOTES)
        )
    if isinstance(value, Mapping):
        return {str(name): _convert_to_plain_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_convert_to_plain_value(each) for each in value]
    return value


def render_error_page(
    status: int,
    sentence: str | None,
    headers: Mapping[str, str],
    *,
    words: tuple[str, str] | None = None,
) -> Response:
    """Render an error as a page.

    `words` contains a title and advice that replace the default texts for the status.
    """
    usual = 400 if status < HTTPStatus.INTERNAL_SERVER_ERROR else 500
    title, advice = words or ERROR_PAGE_TEXTS.get(status, ERROR_PAGE_TEXTS[usual])
    if sentence and sentence != f"{title}." and status == HTTPStatus.NOT_FOUND:
        advice = ""  # the message already describes what is missing
    html = render_template(
        "errors/page.html",
        status=status,
        title=title,
        message=sentence,
        advice=advice,
        # Only users who can see the project can open the list that the link points to.
        above=find_parent_list_link()
        if status == HTTPStatus.NOT_FOUND and g.get("project")
        else None,
        plain_list=add_base_path(request.path) if words is INVALID_QUERY_TEXTS else None,
        request_id=g.get("request_id", ""),
    )
    response = make_response(html, status)
    response.headers.update(headers)
    return response


#: Path of the page that explains error codes.
ERROR_HELP_PATH = "/help/errors"


def add_explanation(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error with a link to its explanation and the ID of this request.

    `error_uri` is defined in RFC 6749 section 5.2.
    """
    address = f"{get_settings().base_url}{ERROR_HELP_PATH}#{body['error']}"
    return {**body, "error_uri": address, "request_id": g.get("request_id", "")}


def find_error_advice(status: int) -> str | None:
    """Return advice if a request should be a POST, or if its URL has a trailing slash."""
    bare = request.path.rstrip("/")
    if status not in {404, 405} or not list_existing_methods(["POST"], path=bare):
        return None
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return f"Send a POST to {_build_url(bare)} with the parameters in the body."
    if bare != request.path:
        return f"This URL does not exist. Remove the trailing slash: {_build_url(bare)}"
    return None


def _build_url(path: str) -> str:
    return f"{get_settings().base_url}{path}"
