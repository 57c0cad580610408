"""Which device's request a page showed, sealed: the answer is to that question and to no other.

The form carries the request and the sign-in that opened it, signed. Another session cannot use it,
and neither can a consent page's ticket stand in for it: that has another purpose.
"""

from datetime import timedelta

from domain.oauth.devices.authorizations import DecidedError
from web.sealing.sealer import BrokenSealError, seal, unseal

_PURPOSE = "device"
#: Longer than any device waits.
_LIFETIME = timedelta(hours=1)


def write_ticket(device_id: int, *, sign_in_id: int) -> str:
    """Seal the number of a request for one sign-in."""
    return seal([device_id, sign_in_id], purpose=_PURPOSE)


def read_ticket(ticket: str, *, sign_in_id: int) -> int:
    """Return the number of the request, or raise DecidedError: nothing is open under this."""
    try:
        device_id, owner = unseal(ticket, purpose=_PURPOSE, lifetime=_LIFETIME)
    except BrokenSealError as error:
        raise DecidedError from error
    if owner != sign_in_id:
        raise DecidedError
    return int(device_id)
