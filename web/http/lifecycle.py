"""Registers the middleware and hooks for all requests, in order, from server to view.

Each hook is defined in the module for its topic. A hook that only one blueprint needs is registered
in the module of its views.
"""

from collections.abc import Callable

from flask import Flask
from flask.typing import ResponseReturnValue
from werkzeug.middleware.proxy_fix import ProxyFix

from web.access.rate_limits import start_limiter, store_rate_limited_user
from web.http.compression import compress_page
from web.http.cors import start_cors
from web.http.endpoints import collect_cross_origin_policies, list_page_blueprints
from web.http.extensions import check_form_token, csrf, start_login_manager
from web.http.public_urls import PathMiddleware
from web.http.request_log import build_log_hook, store_request_start
from web.http.security_headers import add_security_headers
from web.http.transactions import commit_session
from web.pages.double_submit_protection import store_change_time
from web.releases.requested_release import check_release_header
from web.server.request_body import discard_unread_body
from web.settings.environment import Settings


def register_middleware_and_hooks(
    app: Flask, settings: Settings, *, lead_to_setup: Callable[[], ResponseReturnValue | None]
) -> None:
    """Register middleware and hooks, after the blueprints have been registered.

    Before the view, Flask runs the application's hooks, then the blueprint's hooks. After the view,
    it runs the blueprint's hooks, then the application's hooks, both in reverse order.
    """
    # WSGI middleware: a request passes through the last wrapper first.
    app.wsgi_app = PathMiddleware(app.wsgi_app, settings.base_url)  # type: ignore[method-assign]
    if hops := settings.trusted_proxies:
        # Only the client's IP address comes from the proxy; PathMiddleware uses BASE_URL.
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=hops, x_proto=hops, x_host=0, x_port=0, x_prefix=0
        )

    # These hooks run before the view, for all requests.
    app.before_request(store_request_start)
    csrf.init_app(app)  # Its hook checks nothing, because WTF_CSRF_CHECK_DEFAULT is off.
    app.before_request(check_release_header)

    # These hooks run after the view, for all requests, in reverse order.
    app.after_request(build_log_hook(settings))
    app.after_request(add_security_headers)
    app.after_request(discard_unread_body)
    app.after_request(commit_session)
    app.after_request(start_cors(app, collect_cross_origin_policies(app)))

    write_login_cookie = start_login_manager(app)
    check_page_limits = start_limiter(app)
    for name in list_page_blueprints(app):
        # These hooks run before the view of a web page, around the blueprint's own hooks.
        before = app.before_request_funcs.setdefault(name, [])
        before[:] = [
            store_rate_limited_user,
            check_page_limits,
            check_form_token,
            *before,
            lead_to_setup,
        ]
        # These hooks run after the view of a web page, in reverse order.
        after = app.after_request_funcs.setdefault(name, [])
        after += [write_login_cookie, store_change_time, compress_page]

    # At the end of every request, Flask-SQLAlchemy closes the session (web/service_setup.py).
