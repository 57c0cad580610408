"""Commands for SECRET_KEY and SECRET_KEY_FALLBACKS."""

from typing import Any

from flask.cli import AppGroup

from domain.core.errors import ConflictError
from domain.core.secret_keys import delete_missing_keys, record_key_use
from domain.housekeeping.secret_key_rotation import (
    SecretKeyRotation,
    get_secret_key_rotation,
    reencrypt_all_columns,
)
from web.commands.execution import run_in_transaction, run_without_key_check
from web.extensions import db
from web.services import get_current_time, get_services

secrets = AppGroup("secrets", help="Rotate the secret key.")


@secrets.command("status")
@run_without_key_check
def status_command() -> dict[str, Any]:
    """Show the keys of each host, the data that still needs older keys, and the next step."""
    seen = get_secret_key_rotation(
        get_services().keyring, session=db.session(), now=get_current_time()
    )
    return {
        "keys": [_describe_key(fingerprint, seen) for fingerprint in seen.keyring.fingerprints],
        "hosts": [host.convert_to_json_value() for host in seen.hosts],
        "encrypted_with_older": dict(seen.encrypted),
        "hashed_with_older": dict(seen.hashed),
        "unreadable": dict(seen.unreadable),
        "next": _find_next_step(seen),
    }


@secrets.command("reencrypt")
@run_in_transaction
def reencrypt_command() -> dict[str, Any]:
    """Re-encrypt data that older keys encrypted, using SECRET_KEY.

    Every host must have this key.
    """
    session, keyring = db.session(), get_services().keyring
    seen = get_secret_key_rotation(keyring, session=session, now=get_current_time())
    if ignorant := seen.list_hosts_without_key(keyring.fingerprints[0]):
        message = f"These hosts do not have the new SECRET_KEY yet: {', '.join(ignorant)}."
        raise ConflictError(message)
    done = reencrypt_all_columns(keyring, session=session)
    return {"reencrypted": done, "unreadable": dict(seen.unreadable)}


@secrets.command("forget")
@run_without_key_check
def forget_command() -> dict[str, Any]:
    """Discard lost keys, whose data becomes unusable, and continue with SECRET_KEY."""
    session, keyring = db.session(), get_services().keyring
    gone = delete_missing_keys(keyring, session=session)
    record_key_use(keyring, session=session, now=get_current_time())
    return {"forgotten": list(gone)}


def _describe_key(fingerprint: str, secret_key_rotation: SecretKeyRotation) -> dict[str, Any]:
    ignorant, writing = (
        secret_key_rotation.list_hosts_without_key(fingerprint),
        secret_key_rotation.list_hosts_writing_with_key(fingerprint),
    )
    is_newest = fingerprint == secret_key_rotation.keyring.fingerprints[0]
    return {
        "fingerprint": fingerprint,
        "setting": "SECRET_KEY" if is_newest else "SECRET_KEY_FALLBACKS",
        "unknown_to": list(ignorant),
        "written_with_by": list(writing),
        "may_be_written_with": not ignorant,
        "may_be_dropped": not (is_newest or writing or secret_key_rotation.old_key_row_count),
    }


def _find_next_step(secret_key_rotation: SecretKeyRotation) -> str:
    newest, *others = secret_key_rotation.keyring.fingerprints
    ignorant = [
        f"{host} needs {each}"
        for each in (newest, *others)
        for host in secret_key_rotation.list_hosts_without_key(each)
    ]
    writing = [
        name for each in others for name in secret_key_rotation.list_hosts_writing_with_key(each)
    ]
    was_swapped = not secret_key_rotation.used.isdisjoint(others)
    steps = (
        (ignorant, f"Wait until every host has every key: {', '.join(ignorant)}."),
        (
            not others,
            "There is one key. To rotate it, add a new key to SECRET_KEY_FALLBACKS on every host.",
        ),
        (
            not was_swapped,
            "Every host has every key. Swap the new key and SECRET_KEY on one host after another.",
        ),
        (writing, f"Wait until these hosts write with {newest}: {', '.join(writing)}."),
        (any(secret_key_rotation.encrypted.values()), "Run `gatebell secrets reencrypt`."),
        (
            any(secret_key_rotation.hashed.values()),
            (
                "Keep SECRET_KEY_FALLBACKS. Without it, the credentials in hashed_with_older would "
                "become invalid."
            ),
        ),
    )
    done = "SECRET_KEY_FALLBACKS is no longer needed. Remove it on every host."
    return next((sentence for applies, sentence in steps if applies), done)
