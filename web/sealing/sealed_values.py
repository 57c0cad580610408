"""Signs values that pass through a browser, with a purpose and a time.

Values are signed with SECRET_KEY and accepted with every key in SECRET_KEY_FALLBACKS, so that pages
stay usable during a key rotation. Secrets in the session are encrypted, since its cookie is only
signed.
"""

from datetime import timedelta
from typing import Any

from flask import Request, session
from itsdangerous import BadData

from domain.core.keyring import UndecryptableError
from domain.core.randomness import generate_random_hex
from web.services import create_signing_serializer, get_services


def store_secret(name: str, text: str) -> None:
    """Encrypt a secret and store it in the session."""
    session[name] = get_services().keyring.encrypt(text)


def find_secret(name: str) -> str | None:
    """Return a secret from the session, or None."""
    return _decrypt_secret(session.get(name))


def take_secret(name: str) -> str | None:
    """Return a secret and remove it from the session, or return None if there is none."""
    return _decrypt_secret(session.pop(name, None))


def _decrypt_secret(sealed_text: str | None) -> str | None:
    try:
        return get_services().keyring.decrypt(sealed_text) if sealed_text else None
    except UndecryptableError:
        return None  # the secret key was replaced in the meantime


def store_one_time_secret(what: str, owner_id: int, secret: str) -> None:
    """Store a secret that belongs to the object with the ID `owner_id`, for the next page."""
    session[f"shown_once {what}"] = (owner_id, get_services().keyring.encrypt(secret))


def take_one_time_secret(what: str, owner_id: int) -> str | None:
    """Return and remove the secret of an object, or return None if there is none."""
    kept_for, sealed = session.pop(f"shown_once {what}", (None, ""))
    return get_services().keyring.decrypt(sealed) if kept_for == owner_id else None


#: Request header with which `gatebell doctor` detects how proxies change the client's address.
DOCTOR_HEADER = "Gatebell-Doctor"
_PROBE_PURPOSE = "proxy probe"
_PROBE_LIFETIME = timedelta(minutes=2)
#: Headers of pages whose URL is a secret, which neither browsers nor intermediaries may store.
SECRET_URL_HEADERS = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}


class BrokenSealError(Exception):
    """Error for a value that is too old, has an invalid signature, or has another purpose."""


def seal_value(value: Any, *, purpose: str) -> str:
    """Sign a JSON value, and return the value and its signature as unencrypted text."""
    return str(create_signing_serializer(purpose).dumps(value))


def unseal_text(text: str, *, purpose: str, lifetime: timedelta) -> Any:
    """Return the value of a sealed text.

    Raise BrokenSealError if the text is invalid or too old.
    """
    try:
        return create_signing_serializer(purpose).loads(text, max_age=int(lifetime.total_seconds()))
    except BadData as error:
        raise BrokenSealError from error


def create_proxy_probe() -> str:
    """Return a signed value for the `Gatebell-Doctor` header."""
    return seal_value(generate_random_hex(8), purpose=_PROBE_PURPOSE)


def describe_client_address(request: Request) -> dict[str, str]:
    """Return the client's IP address as this service sees it, and the header set by proxies.

    Return an empty mapping unless the request has a valid header from `gatebell doctor`.
    """
    given = request.headers.get(DOCTOR_HEADER)
    if given is None:
        return {}
    try:
        unseal_text(given, purpose=_PROBE_PURPOSE, lifetime=_PROBE_LIFETIME)
    except BrokenSealError:
        return {}
    forwarded = ", ".join(request.headers.getlist("X-Forwarded-For"))
    return {"client": request.remote_addr or "", "forwarded_for": forwarded}
