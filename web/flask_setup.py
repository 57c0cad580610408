"""Configuration of Flask and its extensions."""

from datetime import timedelta

from flask import Flask, Request, Response
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionMixin
from jinja2 import StrictUndefined

from domain.core.clock import Clock
from web.access.rate_limits import build_limiter_configuration
from web.http.cookies import build_cookie_name
from web.http.endpoints import find_endpoint
from web.http.public_urls import get_base_path
from web.releases.usage_recording import CallFlusher
from web.service_setup import start_services
from web.services import list_secret_keys
from web.settings.environment import Settings


class _PageSessionInterface(SecureCookieSessionInterface):
    """Flask's signed session cookie, only for pages. Other endpoints send no `Vary: Cookie`."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Return the session from the cookie, or a new session if there is no cookie."""
        has_cookies = "HTTP_COOKIE" in request.environ
        if not has_cookies or self.get_cookie_name(app) not in request.cookies:
            return self.session_class()
        return super().open_session(app, request)

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        """Write the cookie on pages, unless the session was not used."""
        if not session.accessed and not session.modified:
            return
        endpoint = find_endpoint()
        if endpoint is None or endpoint.is_page:
            super().save_session(app, session, response)


def configure_flask(app: Flask, settings: Settings) -> None:
    """Configure Flask and its middlewares."""
    is_https = settings.base_url.startswith("https://")
    app.config.update(
        # Cookies are limited to the base path.
        APPLICATION_ROOT=get_base_path(settings.base_url) or "/",
        SECRET_KEY=settings.secret_key,
        SECRET_KEY_FALLBACKS=list(settings.secret_key_fallbacks),
        # URLs of static files contain a hash of their content.
        SEND_FILE_MAX_AGE_DEFAULT=timedelta(days=365),
        # A body must be smaller than the setting, whereas Werkzeug accepts a body of its maximum
        # size.
        MAX_CONTENT_LENGTH=settings.form_body_limit_bytes - 1,
        # Cookies ignore ports, so the name has to differ from other services on the same host.
        SESSION_COOKIE_NAME=build_cookie_name("gatebell_session", settings.base_url),
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=is_https,
        PERMANENT_SESSION_LIFETIME=timedelta(seconds=settings.session_lifetime_seconds),
        SESSION_REFRESH_EACH_REQUEST=False,
        PREFERRED_URL_SCHEME="https" if is_https else "http",
        # `web/http/lifecycle.py` checks the blueprints with forms instead.
        WTF_CSRF_CHECK_DEFAULT=False,
        # Flask-WTF would only use the newest key.
        WTF_CSRF_SECRET_KEY=list_secret_keys(settings),
        # The token is valid as long as its session.
        WTF_CSRF_TIME_LIMIT=None,
        # The referrer policy suppresses the header that this check reads. The token and SameSite
        # protect the forms.
        WTF_CSRF_SSL_STRICT=False,
        **build_limiter_configuration(settings),
    )
    app.session_interface = _PageSessionInterface()
    app.json.sort_keys = False  # type: ignore[attr-defined]
    # A missing template variable must be an error, not an empty string.
    app.jinja_env.undefined = StrictUndefined
    app.jinja_env.trim_blocks = True
    app.jinja_env.lstrip_blocks = True


def start_extensions(app: Flask, settings: Settings, *, clock: Clock) -> None:
    """Start the database extension, the services and the storage of call counts."""
    start_services(app, settings, clock=clock)
    #: Counter of calls, whose flusher `gunicorn.conf.py` starts and stops.
    calls = app.extensions["gatebell"].calls
    app.extensions["gatebell_calls"] = CallFlusher(calls, settings)
