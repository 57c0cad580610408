"""What travels through a browser and comes back: signed, of a certain age, for one purpose.

Signed with the newest key and read with every one that SECRET_KEY_FALLBACKS keeps, so that a page
that was open while the key changed can still be answered.
"""

from datetime import timedelta
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer

from web.services import services
from web.settings.reader import Settings


class BrokenSealError(Exception):
    """It was not sealed here for this purpose, or too long ago."""


def signing_keys(settings: Settings) -> list[str]:
    """Return the keys in the order that itsdangerous wants: it signs with the last."""
    return [*reversed(settings.secret_key_fallbacks), settings.secret_key]


def seal(value: Any, *, purpose: str) -> str:
    """Return what JSON can hold as a text that a browser can bring back; it is not hidden."""
    return str(_serializer(purpose).dumps(value))


def unseal(text: str, *, purpose: str, lifetime: timedelta) -> Any:
    """Return what was sealed for this purpose, or raise BrokenSealError."""
    try:
        return _serializer(purpose).loads(text, max_age=int(lifetime.total_seconds()))
    except BadData as error:
        raise BrokenSealError from error


def _serializer(purpose: str) -> URLSafeTimedSerializer:
    keys = signing_keys(services().live_settings.environment)
    return URLSafeTimedSerializer(keys, salt=purpose)
