"""Builds a rate-limited sign-in attempt from the request."""

from flask import request

from domain.accounts.users import SignInAttempt
from web.services import sign_in_limits
from web.signing_in.known_browsers import known_accounts


def sign_in_attempt(login: str, password: str) -> SignInAttempt:
    """Return a sign-in attempt with the limits for this request's address and browser."""
    return sign_in_limits().attempt(
        login, password, address=request.remote_addr, device_ids=known_accounts()
    )
