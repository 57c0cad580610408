"""Forces a password change after an administrator's reset."""

from flask import Flask, redirect, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from web.http.endpoints import find_endpoint, page_blueprints


def require_own_passwords(app: Flask) -> None:
    """Redirect such users to the password form, from all pages but it and those to sign out."""
    for name in page_blueprints(app):
        app.before_request_funcs.setdefault(name, []).append(_lead_to_choice)


def _lead_to_choice() -> ResponseReturnValue | None:
    endpoint = find_endpoint()
    is_open = endpoint is not None and endpoint.open_before_password_change
    if is_open or not current_user.is_authenticated:
        return None
    if not current_user.user.must_change_password:
        return None
    return redirect(url_for("account.security"))
