"""Security headers of all responses.

Pages that applications link to lack two of them. Browsers apply `form-action` to every redirect
after a form is sent, including those of the application's site, of which only the first is known
here. An opener policy would cut a popup off from the application that opened it.
"""

from collections.abc import Iterable

from flask import Blueprint, Flask, Response, g, request

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_FORMS_STAY_HERE = "; form-action 'self'"
_ALWAYS = (
    ("X-Content-Type-Options", "nosniff"),
    # URLs may contain codes and paths that other sites must not see.
    ("Referrer-Policy", "no-referrer"),
)
_PAGES = {
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_ONE_YEAR = 31_536_000


def protect_answers(app: Flask, *, led_to: Iterable[Blueprint]) -> None:
    """Add the headers to every response; some blueprints are entered from applications."""
    names = frozenset(blueprint.name for blueprint in led_to)

    def protect(response: Response) -> Response:
        return _protect(response, is_led_to=request.blueprint in names)

    app.after_request(protect)


def _protect(response: Response, *, is_led_to: bool) -> Response:
    for name, value in _ALWAYS:  # which nobody else sets
        response.headers.add(name, value)
    if response.mimetype == "text/html":
        _protect_page(response, is_led_to=is_led_to)
    elif "bearer" in g:  # what a token opened is its holder's alone (RFC 6750 section 5.3)
        response.headers.setdefault("Cache-Control", "private, no-cache")
    if request.is_secure:
        response.headers.setdefault("Strict-Transport-Security", f"max-age={_ONE_YEAR}")
    return response


def _protect_page(response: Response, *, is_led_to: bool) -> None:
    """Add the headers of a page or a redirect; the opener policy applies to both."""
    response.headers["Content-Security-Policy"] = _POLICY + ("" if is_led_to else _FORMS_STAY_HERE)
    response.headers["Cross-Origin-Opener-Policy"] = "unsafe-none" if is_led_to else "same-origin"
    # Pages are personal: only the browser may cache them, and has to revalidate.
    response.headers.setdefault("Cache-Control", "private, no-cache")
    for name, value in _PAGES.items():
        response.headers.setdefault(name, value)
