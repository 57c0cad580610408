"""New secrets, encrypted in the session for the next page, which shows them once."""

from flask import session

from web.services import services


def keep_one_time_secret(what: str, owner_id: int, secret: str) -> None:
    """Store a secret of the object `owner_id` for the next page."""
    session[f"shown_once {what}"] = (owner_id, services().keyring.encrypt(secret))


def take_one_time_secret(what: str, owner_id: int) -> str | None:
    """Return and remove the secret of an object, or return None."""
    kept_for, sealed = session.pop(f"shown_once {what}", (None, ""))
    return services().keyring.decrypt(sealed) if kept_for == owner_id else None
