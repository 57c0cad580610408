"""Which device's request a page showed, sealed: the answer is to that question and to no other.

The form carries the request and the sign-in that opened it, signed. Another session cannot use it,
and neither can a consent page's ticket stand in for it: the salts differ.
"""

from flask import current_app
from itsdangerous import BadData, URLSafeTimedSerializer

from domain.oauth.devices import DecidedError

#: Longer than any device waits.
_MOST_SECONDS = 3600


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(str(current_app.secret_key), salt="device")


def write_ticket(device_id: int, *, sign_in_id: int) -> str:
    """Seal the number of a request for one sign-in."""
    return str(_serializer().dumps([device_id, sign_in_id]))


def read_ticket(ticket: str, *, sign_in_id: int) -> int:
    """Return the number of the request, or raise DecidedError: nothing is open under this."""
    try:
        device_id, owner = _serializer().loads(ticket, max_age=_MOST_SECONDS)
    except BadData as error:
        raise DecidedError from error
    if owner != sign_in_id:
        raise DecidedError
    return int(device_id)
