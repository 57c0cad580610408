"""Signs values that pass through a browser, with a purpose and a time.

Values are signed with SECRET_KEY and accepted with every key of SECRET_KEY_FALLBACKS, so that pages
stay usable during a key rotation.
"""

from datetime import timedelta
from typing import Any

from flask import Request
from itsdangerous import BadData

from domain.randomness import random_hex
from web.services import sealer

#: The request header by which `gatebell doctor` finds out what proxies do to the client's address.
HEADER = "Gatebell-Doctor"
_PROBE = "proxy probe"
_PROBE_LIFETIME = timedelta(minutes=2)
#: Headers of the page of a link: neither the browser nor anything in between keeps it.
NOT_KEPT = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}


class BrokenSealError(Exception):
    """The value was not sealed with our keys for this purpose, or is too old."""


def seal(value: Any, *, purpose: str) -> str:
    """Sign a JSON value; the returned text is not encrypted."""
    return str(sealer(purpose).dumps(value))


def unseal(text: str, *, purpose: str, lifetime: timedelta) -> Any:
    """Return the value of a sealed text, or raise BrokenSealError."""
    try:
        return sealer(purpose).loads(text, max_age=int(lifetime.total_seconds()))
    except BadData as error:
        raise BrokenSealError from error


def new_probe() -> str:
    """Return the value of the header."""
    return seal(random_hex(8), purpose=_PROBE)


def seen_client(request: Request) -> dict[str, str]:
    """Return the client's IP address as this service sees it, and the header that proxies wrote.

    Returns nothing to others.
    """
    given = request.headers.get(HEADER)
    if given is None:
        return {}
    try:
        unseal(given, purpose=_PROBE, lifetime=_PROBE_LIFETIME)
    except BrokenSealError:
        return {}
    forwarded = ", ".join(request.headers.getlist("X-Forwarded-For"))
    return {"client": request.remote_addr or "", "forwarded_for": forwarded}
