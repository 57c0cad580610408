"""Errors as pages: what is wrong, and what to do next."""

from collections.abc import Mapping
from http import HTTPStatus

from flask import Response, g, make_response, render_template, request

from web.http.public_urls import with_base_path

_SENTENCES = {
    400: ("Bad request", "Go back, reload the page and try again."),
    403: ("Access denied", "Ask an owner for a higher role."),
    404: ("Page not found", "Page not found, or you do not have access."),
    405: ("Method not allowed", "Open the page from a link instead."),
    408: ("Request timeout", "Check your connection, then try again."),
    413: ("Request too large", "Send a smaller request."),
    429: ("Too many requests", "Wait a few minutes, then try again."),
    500: (
        "Internal server error",
        "Nothing was changed. Try again; if the error persists, contact an administrator.",
    ),
    503: ("Service unavailable", "Try again in a moment; nothing was changed."),
}
#: Title and advice for a list with parameters that it does not have.
UNKNOWN_QUERY = ("Invalid list parameters", "Correct the URL, or start again.")
#: Title and advice for a form that was sent too late, or not from its page.
EXPIRED_FORM = (
    "This form has expired",
    "Nothing was changed. Go back, reload the page and try again.",
)


def as_page(
    status: int,
    sentence: str | None,
    headers: Mapping[str, str],
    *,
    words: tuple[str, str] | None = None,
) -> Response:
    """Render an error as a page; `words` are a title and an advice instead of the status's own."""
    usual = 400 if status < HTTPStatus.INTERNAL_SERVER_ERROR else 500
    title, advice = words or _SENTENCES.get(status, _SENTENCES[usual])
    if sentence and status == HTTPStatus.NOT_FOUND:
        advice = ""  # what is missing says it already
    html = render_template(
        "errors/page.html",
        status=status,
        title=title,
        message=sentence,
        advice=advice,
        plain_list=with_base_path(request.path) if words is UNKNOWN_QUERY else None,
        request_id=g.get("request_id", ""),
    )
    response = make_response(html, status)
    response.headers.update(headers)
    return response
