"""Sealed state of the device page: binds the decision to the device request that was shown.

The form contains the signed id of the request and of the sign-in. Another sign-in cannot use it,
and neither can a consent form replace it: its purpose is different.
"""

from datetime import timedelta

from domain.oauth.devices.authorizations import DecidedError
from web.sealing.sealer import BrokenSealError, seal, unseal

_PURPOSE = "device"
#: Longer than any device waits.
_LIFETIME = timedelta(hours=1)


def seal_device_form(device_id: int, *, sign_in_id: int) -> str:
    """Seal the id of a device request for one sign-in."""
    return seal([device_id, sign_in_id], purpose=_PURPOSE)


def open_device_form(sealed_text: str, *, sign_in_id: int) -> int:
    """Return the id of the device request; raise DecidedError if the form is not valid."""
    try:
        device_id, owner = unseal(sealed_text, purpose=_PURPOSE, lifetime=_LIFETIME)
    except BrokenSealError as error:
        raise DecidedError from error
    if owner != sign_in_id:
        raise DecidedError
    return int(device_id)
