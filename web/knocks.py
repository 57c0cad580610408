"""Somebody says who they are, wherever they say it: one pair of limits for all places."""

from datetime import timedelta

from flask import request

from domain.accounts.attempts import AttemptLimit
from domain.accounts.users import Knock
from web.services import settings


def knock_of(login: str, password: str) -> Knock:
    """Return who this request says it comes from, with the limits that apply."""
    current = settings()
    window = timedelta(seconds=current.sign_in_attempts_window_seconds)
    return Knock(
        login=login,
        password=password,
        account_limit=AttemptLimit(
            subject="sign-in account",  # and which one, once it is known
            attempts=current.sign_in_attempts_per_account,
            window=window,
        ),
        address_limit=AttemptLimit(
            subject=f"sign-in address {request.remote_addr}",
            attempts=current.sign_in_attempts_per_address,
            window=window,
        ),
    )
