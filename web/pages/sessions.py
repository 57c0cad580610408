"""Session cookies for pages only; machine endpoints have none, and no `Vary: Cookie`."""

from collections.abc import Iterable

from flask import Flask, Request, Response, request
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionMixin


class PageSessions(SecureCookieSessionInterface):
    """Flask's signed session cookie, limited to pages."""

    def __init__(self, machine_blueprints: Iterable[str]) -> None:
        """Take the names of the machine blueprints."""
        self._machines = frozenset(machine_blueprints)

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Read the cookie, if there is one."""
        has_cookies = "HTTP_COOKIE" in request.environ
        if not has_cookies or self.get_cookie_name(app) not in request.cookies:
            return self.session_class()
        return super().open_session(app, request)

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        """Write the cookie on pages."""
        # Names of nested blueprints begin with their parent's.
        if (request.endpoint or "").partition(".")[0] not in self._machines:
            super().save_session(app, session, response)
