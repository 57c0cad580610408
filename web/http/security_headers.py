"""Security headers of all responses.

Pages that applications link to lack two of them. Browsers apply `form-action` to every redirect
after a form is sent, including those of the application's site, of which only the first is known
here. An opener policy would cut a popup off from the application that opened it.
"""

from http import HTTPStatus

from flask import Flask, Response, g, request

from web.http.cors import refuse_in_whole
from web.http.endpoints import find_endpoint

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_FORMS_STAY_HERE = "; form-action 'self'"
_PAGES = {
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_ONE_YEAR = 31_536_000


def protect_answers(app: Flask) -> None:
    """Add the headers to every response; call it before `allow_cross_origin`.

    Flask begins with what was registered last: the headers for other origins are there already.
    """
    app.after_request(_protect)


def _protect(response: Response) -> Response:
    if request.method == "OPTIONS":
        refuse_in_whole(response)
    response.headers.add("X-Content-Type-Options", "nosniff")
    # URLs may contain codes and paths that other sites must not see.
    response.headers.add("Referrer-Policy", "no-referrer")
    if response.status_code == HTTPStatus.NO_CONTENT:
        # What is not there has no type (RFC 9110 section 8.3), and is no page.
        response.headers.pop("Content-Type", None)
    if response.mimetype == "text/html":
        endpoint = find_endpoint()
        _protect_page(response, leads_out=endpoint is not None and endpoint.leads_to_applications)
    elif "bearer" in g:  # responses to a token are private (RFC 6750 section 5.3)
        response.headers.setdefault("Cache-Control", "private, no-cache")
    if request.is_secure:
        response.headers.setdefault("Strict-Transport-Security", f"max-age={_ONE_YEAR}")
    return response


def _protect_page(response: Response, *, leads_out: bool) -> None:
    """Add the headers of a page or a redirect; the opener policy applies to both."""
    response.headers["Content-Security-Policy"] = _POLICY + ("" if leads_out else _FORMS_STAY_HERE)
    response.headers["Cross-Origin-Opener-Policy"] = "unsafe-none" if leads_out else "same-origin"
    # Pages are personal: only the browser may cache them, and has to revalidate.
    response.headers.setdefault("Cache-Control", "private, no-cache")
    for name, value in _PAGES.items():
        response.headers.setdefault(name, value)
