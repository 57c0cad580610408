"""Session cookies for pages only; machine endpoints have none, and no `Vary: Cookie`."""

from flask import Flask, Request, Response
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionMixin

from web.http.endpoints import find_endpoint


class PageSessions(SecureCookieSessionInterface):
    """Flask's signed session cookie, limited to pages."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Read the cookie, if there is one."""
        has_cookies = "HTTP_COOKIE" in request.environ
        if not has_cookies or self.get_cookie_name(app) not in request.cookies:
            return self.session_class()
        return super().open_session(app, request)

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        """Write the cookie on pages."""
        endpoint = find_endpoint()
        if endpoint is None or endpoint.is_page:
            super().save_session(app, session, response)
