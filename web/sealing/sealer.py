"""Signs values that pass through a browser, with a purpose and a time.

Values are signed with SECRET_KEY and accepted with every key of SECRET_KEY_FALLBACKS, so that pages
stay usable during a key rotation.
"""

from datetime import timedelta
from typing import Any

from itsdangerous import BadData

from web.services import sealer


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
