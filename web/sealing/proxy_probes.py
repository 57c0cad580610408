"""Requests by which `gatebell doctor` finds out what proxies do to the client's IP address.

Only who knows SECRET_KEY is told what arrived.
"""

from datetime import timedelta

from flask import Request

from domain.randomness import random_hex
from web.sealing.sealer import BrokenSealError, seal, unseal

#: The request header that has the proof.
HEADER = "Gatebell-Doctor"
_PURPOSE = "proxy probe"
_LIFETIME = timedelta(minutes=2)


def new_probe() -> str:
    """Return the value of the header."""
    return seal(random_hex(8), purpose=_PURPOSE)


def seen_client(request: Request) -> dict[str, str]:
    """Return the client's IP address as this service sees it, and the header that proxies wrote.

    Returns nothing to others.
    """
    given = request.headers.get(HEADER)
    if given is None:
        return {}
    try:
        unseal(given, purpose=_PURPOSE, lifetime=_LIFETIME)
    except BrokenSealError:
        return {}
    forwarded = ", ".join(request.headers.getlist("X-Forwarded-For"))
    return {"client": request.remote_addr or "", "forwarded_for": forwarded}
