"""Flask extensions for requests, which `web/http/lifecycle.py` initializes."""

from collections.abc import Callable
from typing import Any

from flask import Flask, g, request
from flask_limiter import Limiter
from flask_login import LoginManager
from flask_wtf import CSRFProtect

from domain.core.ip_addresses import get_client_network


def get_client_address() -> str:
    """Return the client's IPv4 address or IPv6 network, by which requests are counted.

    Only trusted proxies can set the address.
    """
    return get_client_network(request.remote_addr or "")


def get_rate_limit_key() -> str:
    """Return `g.limited_user_id`, which access checks set, or the client's IP address."""
    user_id = g.get("limited_user_id")
    return get_client_address() if user_id is None else f"user-{user_id}"


login_manager = LoginManager()
csrf = CSRFProtect()
#: Rate limiter. `web/access/rate_limits.py` defines the limits.
limiter = Limiter(get_rate_limit_key)


def check_form_token() -> None:
    """Check the CSRF token of a form."""
    csrf.protect(apply_exemptions=True)


def start_login_manager(app: Flask) -> Callable[[Any], Any]:
    """Start Flask-Login, and return its hook, which must run only for web pages.

    The hook reads the session of the request in order to write its own cookie.
    """
    login_manager.init_app(app)
    return app.after_request_funcs[None].pop()
