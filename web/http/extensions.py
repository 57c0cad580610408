"""The Flask extensions for requests, which `web/setup.py` gives to the application."""

from flask import g, request
from flask_limiter import Limiter
from flask_login import LoginManager
from flask_wtf import CSRFProtect

from domain.core.ip_addresses import client_prefix


def client_address() -> str:
    """Return the client's IP address, for counting; only trusted proxies can set it."""
    return client_prefix(request.remote_addr or "")


def client_or_user() -> str:
    """Return the user whom an access check noted in `g.limited_user_id`, or the IP address."""
    user_id = g.get("limited_user_id")
    return client_address() if user_id is None else f"user-{user_id}"


login_manager = LoginManager()
csrf = CSRFProtect()
#: The limits themselves are in `web/access/rate_limits.py`.
limiter = Limiter(client_or_user)
