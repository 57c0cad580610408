"""Whoever has a password that somebody else made chooses one of their own before anything else."""

from collections.abc import Iterable

from flask import Blueprint, Flask, redirect, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

#: Where one is chosen, and ways out.
_STILL_OPEN = frozenset({"account.security", "sessions.sign_out", "logout.ask", "logout.decide"})


def insist_on_own_passwords(app: Flask, pages: Iterable[Blueprint]) -> None:
    """Lead such visitors from every page to the one where they choose."""
    for blueprint in pages:
        app.before_request_funcs.setdefault(blueprint.name, []).append(_lead_to_choice)


def _lead_to_choice() -> ResponseReturnValue | None:
    if request.endpoint in _STILL_OPEN or not current_user.is_authenticated:
        return None
    if not current_user.user.must_change_password:
        return None
    return redirect(url_for("account.security"))
