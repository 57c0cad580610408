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
