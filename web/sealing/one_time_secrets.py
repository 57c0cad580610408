"""Secrets that cross one redirect in the session, encrypted, and are then gone."""

from flask import session

from web.services import services


def show_once(what: str, owner_id: int, secret: str) -> None:
    """Keep a secret for the next page that takes it; `owner_id` is whom or what it belongs to."""
    session[f"shown_once {what}"] = (owner_id, services().keyring.encrypt(secret))


def take_shown_once(what: str, owner_id: int) -> str | None:
    """Return the secret that was just made, and forget it; None if there is none."""
    kept_for, sealed = session.pop(f"shown_once {what}", (None, ""))
    return services().keyring.decrypt(sealed) if kept_for == owner_id else None
