"""Headers that keep a browser from being used against its user.

Pages that applications lead people to have two of them less. Browsers apply a page's `form-action`
to every redirect that follows a form, those of the application's own site included, of which we
know only the first; and a page with an opener policy of its own is cut off from the application
that opened it in a popup and waits for it to close.
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
    # Addresses may carry codes and paths that are nobody else's business.
    ("Referrer-Policy", "no-referrer"),
)
_PAGES = {
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_ONE_YEAR = 31_536_000


def protect_answers(app: Flask, *, led_to: Iterable[Blueprint]) -> None:
    """Add the headers to every answer of the app; applications lead people to some blueprints."""
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
    """Protect a page, or a redirect: what one of these says counts for the opener as well."""
    response.headers["Content-Security-Policy"] = _POLICY + ("" if is_led_to else _FORMS_STAY_HERE)
    response.headers["Cross-Origin-Opener-Policy"] = "unsafe-none" if is_led_to else "same-origin"
    # A page shows what only its user may see: no cache but the browser's own, and fresh each time.
    response.headers.setdefault("Cache-Control", "private, no-cache")
    for name, value in _PAGES.items():
        response.headers.setdefault(name, value)
