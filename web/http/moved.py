"""Leads requests from a former path of a group or project to the present one."""

from flask import Response, make_response, redirect, request, url_for

from domain.projects.paths import MovedError
from web.http.endpoints import ErrorFormat, error_format
from web.http.error_formats import written_json
from web.http.routes import decoded_reference

_READING = frozenset({"GET", "HEAD"})
#: As GitLab's clients know it.
_NOT_MOVED = "Non GET methods are not allowed for moved projects"


def moved_answer(error: MovedError) -> Response | None:
    """Return the response for a request to a former path; None where the URL has no such part.

    Pages redirect, and a form that was open during the move is sent on (RFC 9110 section 15.4.8).
    Neither redirect is kept by browsers: a path can become the present one again.
    """
    name = next(
        (key for key, value in (request.view_args or {}).items() if _is_asked(value, error)), None
    )
    if name is None:
        return None
    if error_format() is ErrorFormat.PAGE:
        status = 302 if request.method in _READING else 307
        return make_response(redirect(_url(name, error.namespace.path), status))
    if error_format() is not ErrorFormat.API:
        return None
    if request.method not in _READING:
        return written_json({"message": f"405 {_NOT_MOVED}"}, 405, {"Allow": "GET, HEAD"})
    body = {"message": f"302 Found: {error}"}
    return written_json(body, 302, {"Location": _url(name, str(error.namespace.id))})


def _is_asked(value: object, error: MovedError) -> bool:
    return isinstance(value, str) and decoded_reference(value) == error.former


def _url(name: str, reference: str) -> str:
    url = url_for(str(request.endpoint), **{**(request.view_args or {}), name: reference})
    query = request.query_string.decode("latin-1")
    return f"{url}?{query}" if query else url
