"""Time zone of the browser, which a script stores in a cookie."""

from flask import request

from domain.core.errors import InvalidError
from domain.core.time_zones import normalize_zone_name

#: Name of the cookie. The cookie is not a secret, and no decision depends on it.
_COOKIE_NAME = "time_zone"


def get_browser_zone() -> str | None:
    """Return the time zone of the browser, or None if it is unknown."""
    try:
        return normalize_zone_name(request.cookies.get(_COOKIE_NAME, ""))
    except InvalidError:
        return None
