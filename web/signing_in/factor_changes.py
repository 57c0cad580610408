"""Completes changes of second factors; the session holds new recovery codes for their page."""

from collections.abc import Sequence

from flask import flash, redirect, url_for
from flask.typing import ResponseReturnValue

from web.sealing.session_secrets import keep_secret, take_secret
from web.signing_in.completion import renew_this_sign_in

_SESSION_KEY = "recovery_codes"


def finish_adding_factor(name: str, codes: Sequence[str]) -> ResponseReturnValue:
    """Confirm a new second factor; the first one has recovery codes."""
    renew_this_sign_in()
    if codes:
        return to_recovery_codes(codes)
    flash(f"The {name} is ready: use it when you sign in.")
    return redirect(url_for("account.security"))


def to_recovery_codes(codes: Sequence[str]) -> ResponseReturnValue:
    """Redirect to the page that shows new codes once."""
    keep_secret(_SESSION_KEY, " ".join(codes))
    return redirect(url_for("second_factors.show_recovery_codes"))


def take_recovery_codes() -> list[str]:
    """Return the codes that were just issued, once."""
    return (take_secret(_SESSION_KEY) or "").split()
