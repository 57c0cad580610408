"""Secrets encrypted in the session, whose cookie is only signed."""

from flask import session

from domain.keyring import UndecipherableError
from web.services import services


def keep_secret(name: str, text: str) -> None:
    """Store a secret in the session."""
    session[name] = services().keyring.encrypt(text)


def find_secret(name: str) -> str | None:
    """Return a secret of the session, or None."""
    return _opened(session.get(name))


def take_secret(name: str) -> str | None:
    """Return and remove a secret of the session."""
    return _opened(session.pop(name, None))


def _opened(sealed: str | None) -> str | None:
    try:
        return services().keyring.decrypt(sealed) if sealed else None
    except UndecipherableError:
        return None  # the secret key was replaced since


def keep_one_time_secret(what: str, owner_id: int, secret: str) -> None:
    """Store a secret of the object `owner_id` for the next page."""
    session[f"shown_once {what}"] = (owner_id, services().keyring.encrypt(secret))


def take_one_time_secret(what: str, owner_id: int) -> str | None:
    """Return and remove the secret of an object, or return None."""
    kept_for, sealed = session.pop(f"shown_once {what}", (None, ""))
    return services().keyring.decrypt(sealed) if kept_for == owner_id else None
