"""Signs values that pass through a browser, with a purpose and a time.

Values are signed with SECRET_KEY and accepted with every key of SECRET_KEY_FALLBACKS, so that pages
stay usable during a key rotation.
"""

from datetime import timedelta
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer

from web.services import services
from web.settings.reader import Settings


class BrokenSealError(Exception):
    """The value was not sealed with our keys for this purpose, or is too old."""


def signing_keys(settings: Settings) -> list[str]:
    """Return the keys in the order of itsdangerous, which signs with the last."""
    return [*reversed(settings.secret_key_fallbacks), settings.secret_key]


def seal(value: Any, *, purpose: str) -> str:
    """Sign a JSON value; the returned text is not encrypted."""
    return str(_serializer(purpose).dumps(value))


def unseal(text: str, *, purpose: str, lifetime: timedelta) -> Any:
    """Return the value of a sealed text, or raise BrokenSealError."""
    try:
        return _serializer(purpose).loads(text, max_age=int(lifetime.total_seconds()))
    except BadData as error:
        raise BrokenSealError from error


def _serializer(purpose: str) -> URLSafeTimedSerializer:
    keys = signing_keys(services().live_settings.environment)
    return URLSafeTimedSerializer(keys, salt=purpose)
