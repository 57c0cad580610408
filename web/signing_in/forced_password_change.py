"""Forces a password change after an administrator's reset."""

from collections.abc import Iterable

from flask import Blueprint, Flask, redirect, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

#: Pages that stay reachable: the change itself, and signing out.
_STILL_OPEN = frozenset({"account.security", "sessions.sign_out", "logout.ask", "logout.decide"})


def require_own_passwords(app: Flask, pages: Iterable[Blueprint]) -> None:
    """Redirect such users from every page to the password form."""
    for blueprint in pages:
        app.before_request_funcs.setdefault(blueprint.name, []).append(_lead_to_choice)


def _lead_to_choice() -> ResponseReturnValue | None:
    if request.endpoint in _STILL_OPEN or not current_user.is_authenticated:
        return None
    if not current_user.user.must_change_password:
        return None
    return redirect(url_for("account.security"))
