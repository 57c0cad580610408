"""Cookies are for pages: what machines call is answered without one, and without `Vary: Cookie`."""

from collections.abc import Iterable

from flask import Flask, Request, Response, request
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionMixin


class PageSessions(SecureCookieSessionInterface):
    """Flask's signed cookie, but only where pages are."""

    def __init__(self, machine_blueprints: Iterable[str]) -> None:
        """Take the names of the blueprints that only machines call."""
        self._machines = frozenset(machine_blueprints)

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Read the cookie if there is one; without one there is nothing to verify."""
        has_cookies = "HTTP_COOKIE" in request.environ
        if not has_cookies or self.get_cookie_name(app) not in request.cookies:
            return self.session_class()
        return super().open_session(app, request)

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        """Write the cookie if this is a page."""
        # A blueprint inside another one has the other's name before its own.
        if (request.endpoint or "").partition(".")[0] not in self._machines:
            super().save_session(app, session, response)
