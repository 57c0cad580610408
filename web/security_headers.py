"""Headers that keep a browser from being used against its user."""

from flask import Flask, Response, g, request

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action {form_action}; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_ALWAYS = (
    ("X-Content-Type-Options", "nosniff"),
    # Addresses may carry codes and paths that are nobody else's business.
    ("Referrer-Policy", "no-referrer"),
)
_PAGES = {
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_ONE_YEAR = 31_536_000


def protect_answers(app: Flask) -> None:
    """Add the headers to every answer of the app."""
    app.after_request(_protect)


def _protect(response: Response) -> Response:
    for name, value in _ALWAYS:  # which nobody else sets
        response.headers.add(name, value)
    if response.mimetype == "text/html":
        _protect_page(response)
    elif "bearer" in g:  # what a token opened is its holder's alone (RFC 6750 section 5.3)
        response.headers.setdefault("Cache-Control", "private, no-cache")
    if request.is_secure:
        response.headers.setdefault("Strict-Transport-Security", f"max-age={_ONE_YEAR}")
    return response


def _protect_page(response: Response) -> None:
    source = g.get("form_action_source", "")
    form_action = f"'self' {source}".strip()
    response.headers["Content-Security-Policy"] = _POLICY.format(form_action=form_action)
    # A page shows what only its user may see: no cache but the browser's own, and fresh each time.
    response.headers.setdefault("Cache-Control", "private, no-cache")
    for name, value in _PAGES.items():
        response.headers.setdefault(name, value)
