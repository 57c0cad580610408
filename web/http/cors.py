"""Scripts of other origins (the Fetch standard's CORS): where they may call, and with what.

Flask-Cors writes the headers. It answers a preflight that asks for too much with what it would
allow; here such a preflight gets no Access-Control header at all, and neither does any address
that is not open.
"""

from collections.abc import Callable
from dataclasses import dataclass

from flask import Flask, Response, request
from flask_cors import cross_origin

_ORIGIN = "Access-Control-Allow-Origin"
_EXPOSED = "Access-Control-Expose-Headers"
#: What a request without a preflight may carry, and the one header that needs one.
_HEADERS = ("Accept", "Accept-Language", "Content-Language", "Content-Type", "Authorization")
_KEPT_SECONDS = 7_200


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What scripts of other origins may do at an address; none of it with a cookie."""

    methods: tuple[str, ...]
    #: What a request may carry.
    headers: tuple[str, ...] = _HEADERS
    #: What a script may read of an answer beside its body.
    exposed: tuple[str, ...] = ()

    def opener(self) -> Callable[[Response], Response]:
        """Return what adds the headers to the answer for a script."""
        opened: Callable[[Response], Response] = cross_origin(
            methods=list(self.methods),
            origins="*",
            send_wildcard=True,
            allow_headers=list(self.headers),
            expose_headers=list(self.exposed) or None,
            max_age=_KEPT_SECONDS,
            automatic_options=False,
        )(_same)
        return opened

    def allows(self, method: str) -> bool:
        """Tell whether the request that this preflight announces may be made."""
        asked = request.headers.get("Access-Control-Request-Headers", "").lower().split(",")
        allowed = {name.lower() for name in self.headers}
        is_known = {name.strip() for name in asked} - {""} <= allowed
        return is_known and method in self.methods


#: Every address of OAuth that answers a preflight.
_OPENINGS = {
    "/oauth/token": Opening(methods=("POST",)),
    "/oauth/revoke": Opening(methods=("POST",)),
    "/oauth/userinfo": Opening(methods=("GET", "POST")),
}
_API = "/api/v4/"
#: No cookie opens anything there, so that a page can do no more than who gave it the token.
_API_OPENING = Opening(
    methods=("GET", "HEAD", "POST", "PUT", "DELETE"),
    headers=(*_HEADERS, "PRIVATE-TOKEN", "Idempotency-Key", "If-None-Match", "Platform-Release"),
    exposed=(
        *("Link", "X-Total", "X-Total-Pages", "X-Page", "X-Per-Page", "X-Next-Page"),
        *("X-Prev-Page", "RateLimit-Limit", "RateLimit-Observed", "RateLimit-Remaining"),
        *("RateLimit-Reset", "Retry-After", "ETag", "Deprecation", "Sunset"),
    ),
)


def answer_other_origins(app: Flask) -> None:
    """Add the headers, to errors as well; any origin may call, and none with a cookie."""
    # By hand and not as an extension: that would ask at every address whether it is one of these.
    openers = {opening: opening.opener() for opening in (*_OPENINGS.values(), _API_OPENING)}

    def answer(response: Response) -> Response:
        opening = _opening_of(request.path)
        if opening is None:
            return response
        if "HTTP_ORIGIN" not in request.environ:
            return _told_to_all(opening, response)
        return _blunt(opening, openers[opening](response))

    app.after_request(answer)


def _opening_of(path: str) -> Opening | None:
    return _API_OPENING if path.startswith(_API) else _OPENINGS.get(path)


def _told_to_all(opening: Opening, response: Response) -> Response:
    """Answer no script, and yet as if it were one, should a cache have the answer for one."""
    response.headers[_ORIGIN] = "*"
    if opening.exposed:
        response.headers[_EXPOSED] = ", ".join(opening.exposed)
    return response


def _same(response: Response) -> Response:
    return response


def _blunt(opening: Opening, response: Response) -> Response:
    """Take every Access-Control header from a preflight that asks for too much."""
    method = request.headers.get("Access-Control-Request-Method")
    if request.method == "OPTIONS" and method is not None and not opening.allows(method):
        for name in [name for name, _ in response.headers if name.startswith("Access-Control-")]:
            del response.headers[name]
    return response
