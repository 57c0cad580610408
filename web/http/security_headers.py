"""Security headers for all responses.

Two headers are omitted from pages that applications link to. Browsers apply `form-action` to each
redirect after a form is sent, including redirects by the application's site. Only the first
redirect is known to this server. An opener policy would separate a popup from the application that
opened it.
"""

from http import HTTPStatus

from flask import Response, g, request

from web.http.cors import remove_disallowed_cors_headers
from web.http.endpoints import find_endpoint

_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_FORM_ACTION_POLICY = "; form-action 'self'"
_PAGE_HEADERS = {
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_HSTS_SECONDS = 31_536_000


def add_security_headers(response: Response) -> Response:
    """Add the security headers to a response that already has the CORS headers."""
    if request.method == "OPTIONS":
        remove_disallowed_cors_headers(response)
    response.headers.add("X-Content-Type-Options", "nosniff")
    # Prevent other sites from seeing codes and paths in URLs.
    response.headers.add("Referrer-Policy", "no-referrer")
    if response.status_code == HTTPStatus.NO_CONTENT:
        # A response without a body has no media type (RFC 9110 section 8.3) and is not a web page.
        response.headers.pop("Content-Type", None)
    if response.mimetype == "text/html":
        endpoint = find_endpoint()
        _add_page_headers(
            response, leads_out=endpoint is not None and endpoint.leads_to_applications
        )
    elif "bearer" in g:  # responses to requests with tokens are private (RFC 6750 section 5.3)
        response.headers.setdefault("Cache-Control", "private, no-cache")
    if request.is_secure:
        response.headers.setdefault("Strict-Transport-Security", f"max-age={_HSTS_SECONDS}")
    return response


def _add_page_headers(response: Response, *, leads_out: bool) -> None:
    """Add the security headers for a page or a redirect.

    The opener policy applies to pages and to redirects.
    """
    response.headers["Content-Security-Policy"] = _CONTENT_SECURITY_POLICY + (
        "" if leads_out else _FORM_ACTION_POLICY
    )
    response.headers["Cross-Origin-Opener-Policy"] = "unsafe-none" if leads_out else "same-origin"
    # Pages are personal. Only browsers may cache them, and only with revalidation.
    response.headers.setdefault("Cache-Control", "private, no-cache")
    for name, value in _PAGE_HEADERS.items():
        response.headers.setdefault(name, value)
