"""Somebody says who they are, wherever they say it: one pair of limits for all places."""

from flask import request

from domain.accounts.users import Knock
from web.services import knock_limits
from web.signing_in.known_browsers import known_accounts


def knock_of(login: str, password: str) -> Knock:
    """Return who this request says it comes from, with the limits that apply."""
    return knock_limits().knock(
        login, password, address=request.remote_addr, marks=known_accounts()
    )
