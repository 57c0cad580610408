"""CORS policies (Fetch standard) for scripts from other origins, always without credentials.

Flask-Cors writes the headers according to the policies that the views declare. Gatebell handles
preflight requests more strictly, with `remove_disallowed_cors_headers`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from flask import Flask, Response, request
from flask.globals import request_ctx
from flask_cors import CORS

#: CORS-safelisted request headers, and Authorization.
SIMPLE_HEADERS = ("Accept", "Accept-Language", "Content-Language", "Content-Type", "Authorization")
#: Response headers that inform scripts about rate limits.
RATE_LIMIT_HEADERS = (
    *("RateLimit-Limit", "RateLimit-Observed", "RateLimit-Remaining", "RateLimit-Reset"),
    "Retry-After",
)
_PREFLIGHT_CACHE_SECONDS = 7_200
#: Header that browsers send only with preflight requests. Flask-Cors responds to it in any request.
_PRIVATE_NETWORK_KEY = "HTTP_ACCESS_CONTROL_REQUEST_PRIVATE_NETWORK"


@dataclass(frozen=True, kw_only=True)
class CorsPolicy:
    """Permissions for scripts from any origin.

    Scripts can always read responses, including errors.
    """

    #: Methods that preflight responses allow.
    methods: tuple[str, ...] = ()
    #: Request headers that preflight responses allow.
    headers: tuple[str, ...] = SIMPLE_HEADERS
    #: Response headers that scripts may read.
    exposed: tuple[str, ...] = ()


def start_cors(app: Flask, policies: Mapping[str, CorsPolicy]) -> Callable[[Response], Response]:
    """Start Flask-Cors with policies by URL regular expression, and return its hook.

    For a URL without variables, Flask-Cors is called once, and its headers are reused. Flask-Cors
    handles all preflight requests.
    """
    CORS(
        app,
        resources={
            pattern: {
                "methods": policy.methods,
                "allow_headers": policy.headers,
                "expose_headers": policy.exposed,
            }
            for pattern, policy in policies.items()
        },
        origins="*",
        send_wildcard=True,  # sent even without Origin, since a cache may reuse the response
        max_age=_PREFLIGHT_CACHE_SECONDS,
        intercept_exceptions=False,  # errors have been rendered already
    )
    return partial(_add_cors_headers, {}, app.after_request_funcs[None].pop())


def _add_cors_headers(
    known: dict[str, tuple[tuple[str, str], ...]],
    write: Callable[[Response], Any],
    response: Response,
) -> Response:
    asked = request_ctx.request
    rule = asked.url_rule
    # A rule with variables may match URLs with different policies.
    is_plain = asked.method != "OPTIONS" and _PRIVATE_NETWORK_KEY not in asked.environ
    if rule is None or rule.arguments or not is_plain:
        written: Response = write(response)
        return written
    headers = known.get(rule.rule)
    if headers is None:
        found = write(Response()).headers
        headers = tuple(each for each in found if each[0].startswith("Access-Control-"))
        known[rule.rule] = headers
    for name, value in headers:
        response.headers.add(name, value)
    return response


def remove_disallowed_cors_headers(response: Response) -> None:
    """Remove all CORS headers from a preflight response if the method or a header is not allowed.

    Flask-Cors would list the allowed methods and headers, and it accepts parts of method names.
    """
    if not _is_preflight_allowed(response):
        for name in [name for name, _ in response.headers if name.startswith("Access-Control-")]:
            del response.headers[name]


def _is_preflight_allowed(response: Response) -> bool:
    method = request.headers.get("Access-Control-Request-Method")
    if method is None:  # not a preflight request
        return True
    asked = _parse_names(request.headers.get("Access-Control-Request-Headers", ""))
    allowed = _parse_names(response.headers.get("Access-Control-Allow-Headers", ""))
    methods = response.headers.get("Access-Control-Allow-Methods", "").split(", ")
    return method in methods and asked <= allowed


def _parse_names(listed: str) -> set[str]:
    return {name.strip().lower() for name in listed.split(",")} - {""}
