"""CORS (Fetch standard): the endpoints, methods and headers that other origins may use.

Flask-Cors writes the headers. A preflight request for a method or header that is not allowed gets
no Access-Control header at all, and neither does any other endpoint.
"""

from collections.abc import Callable
from dataclasses import dataclass

from flask import Flask, Response, request
from flask_cors import cross_origin

_ORIGIN = "Access-Control-Allow-Origin"
_EXPOSED = "Access-Control-Expose-Headers"
#: CORS-safelisted request headers, and Authorization.
_HEADERS = ("Accept", "Accept-Language", "Content-Language", "Content-Type", "Authorization")
_KEPT_SECONDS = 7_200


@dataclass(frozen=True, kw_only=True)
class CorsPolicy:
    """The CORS policy of an endpoint, always without credentials."""

    methods: tuple[str, ...]
    #: Allowed request headers.
    headers: tuple[str, ...] = _HEADERS
    #: Response headers that scripts may read.
    exposed: tuple[str, ...] = ()

    def header_writer(self) -> Callable[[Response], Response]:
        """Return a function that adds the headers to a response."""
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
        """Return whether the request of this preflight is allowed."""
        asked = request.headers.get("Access-Control-Request-Headers", "").lower().split(",")
        allowed = {name.lower() for name in self.headers}
        is_known = {name.strip() for name in asked} - {""} <= allowed
        return is_known and method in self.methods


#: Policies of the OAuth endpoints, by path.
_POLICIES = {
    "/oauth/token": CorsPolicy(methods=("POST",)),
    "/oauth/revoke": CorsPolicy(methods=("POST",)),
    "/oauth/userinfo": CorsPolicy(methods=("GET", "POST")),
}
_API = "/api/v4/"
#: The API accepts no cookies, so a page can do no more than the owner of its token.
_API_POLICY = CorsPolicy(
    methods=("GET", "HEAD", "POST", "PUT", "DELETE"),
    headers=(*_HEADERS, "PRIVATE-TOKEN", "Idempotency-Key", "If-None-Match", "Platform-Release"),
    exposed=(
        *("Link", "X-Total", "X-Total-Pages", "X-Page", "X-Per-Page", "X-Next-Page"),
        *("X-Prev-Page", "RateLimit-Limit", "RateLimit-Observed", "RateLimit-Remaining"),
        *("RateLimit-Reset", "Retry-After", "ETag", "Deprecation", "Sunset"),
    ),
)


def add_cors_headers(app: Flask) -> None:
    """Add CORS headers to all responses, for any origin and without credentials."""
    # Not as an extension, which would match every path against every pattern.
    writers = {policy: policy.header_writer() for policy in (*_POLICIES.values(), _API_POLICY)}

    def answer(response: Response) -> Response:
        policy = _policy_of(request.path)
        if policy is None:
            return response
        if "HTTP_ORIGIN" not in request.environ:
            return _answer_as_if_cross_origin(policy, response)
        return _strip_cors_headers(policy, writers[policy](response))

    app.after_request(answer)


def _policy_of(path: str) -> CorsPolicy | None:
    return _API_POLICY if path.startswith(_API) else _POLICIES.get(path)


def _answer_as_if_cross_origin(policy: CorsPolicy, response: Response) -> Response:
    """Add the headers without an Origin, because a cache may serve the response to a script."""
    response.headers[_ORIGIN] = "*"
    if policy.exposed:
        response.headers[_EXPOSED] = ", ".join(policy.exposed)
    return response


def _same(response: Response) -> Response:
    return response


def _strip_cors_headers(policy: CorsPolicy, response: Response) -> Response:
    """Remove every Access-Control header from a preflight response that is not allowed."""
    method = request.headers.get("Access-Control-Request-Method")
    if request.method == "OPTIONS" and method is not None and not policy.allows(method):
        for name in [name for name, _ in response.headers if name.startswith("Access-Control-")]:
            del response.headers[name]
    return response
