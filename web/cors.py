"""Scripts of other origins (the Fetch standard's CORS): where they may call, and with what.

Flask-Cors writes the headers. It answers a preflight that asks for too much with what it would
allow; here such a preflight gets no Access-Control header at all, and neither does any address
that is not in the table.
"""

from collections.abc import Callable

from flask import Flask, Response, request
from flask_cors import cross_origin

#: Every address that answers a preflight, and the methods that may follow it.
_METHODS = {
    "/oauth/token": ["POST"],
    "/oauth/revoke": ["POST"],
    "/oauth/userinfo": ["GET", "POST"],
}
#: What a request without a preflight may carry, and the one header that needs one.
_HEADERS = ["Accept", "Accept-Language", "Content-Language", "Content-Type", "Authorization"]
_KEPT_SECONDS = 7_200


def answer_other_origins(app: Flask) -> None:
    """Add the headers, to errors as well; any origin may call, and none with a cookie."""
    # By hand and not as an extension: that would ask at every address whether it is one of these.
    openers = {path: _opener(methods) for path, methods in _METHODS.items()}

    def answer(response: Response) -> Response:
        opener = openers.get(request.path)
        if opener is None:
            return response
        if "HTTP_ORIGIN" not in request.environ:
            # No script asks. The answer is the same, should a cache have it for one.
            response.headers["Access-Control-Allow-Origin"] = "*"
            return response
        return _blunt(opener(response))

    app.after_request(answer)


def _opener(methods: list[str]) -> Callable[[Response], Response]:
    """Return what adds the headers of an address to an answer."""
    opened: Callable[[Response], Response] = cross_origin(
        methods=methods,
        origins="*",
        send_wildcard=True,
        allow_headers=_HEADERS,
        max_age=_KEPT_SECONDS,
        automatic_options=False,
    )(_same)
    return opened


def _same(response: Response) -> Response:
    return response


def _blunt(response: Response) -> Response:
    """Take every Access-Control header from a preflight that asks for too much."""
    method = request.headers.get("Access-Control-Request-Method")
    if request.method == "OPTIONS" and method is not None and not _is_allowed(method):
        for name in [name for name, _ in response.headers if name.startswith("Access-Control-")]:
            del response.headers[name]
    return response


def _is_allowed(method: str) -> bool:
    asked = request.headers.get("Access-Control-Request-Headers", "").lower().split(",")
    allowed = {name.lower() for name in _HEADERS}
    is_known = {name.strip() for name in asked} - {""} <= allowed
    return is_known and method in _METHODS.get(request.path, ())
