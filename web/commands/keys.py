"""Commands about the keys that sign ID tokens."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.audit.events import Event, EventKind
from domain.oauth.openid.keys import USUAL_BITS, KeyRotation, list_published_keys, rotate
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now, services

keys = AppGroup("keys", help="Keys that sign ID tokens.")


@keys.command("list")
@one_transaction
def list_keys_command() -> dict[str, Any]:
    """List the published keys, oldest first."""
    published = list_published_keys(session=db.session(), now=now())
    return {"keys": [key.as_json() for key in published]}


@keys.command("rotate")
@click.option(
    "--handover",
    type=click.Choice([each.value for each in KeyRotation]),
    default=KeyRotation.AFTER_NOTICE.value,
    show_default=True,
    help="When the new key starts signing, and whether the old keys are kept.",
)
@click.option("--bits", type=int, default=USUAL_BITS, show_default=True, help="Size of the key.")
@one_transaction
def rotate_keys_command(*, handover: str, bits: int) -> dict[str, Any]:
    """Create a key. Old keys stay published until all their ID tokens have expired."""
    session, moment = db.session(), now()
    kid = rotate(
        KeyRotation(handover), bits=bits, session=session, keyring=services().keyring, now=moment
    )
    how = {"handover": handover, "bits": bits}
    record_event(Event(kind=EventKind.SIGNING_KEY_ROTATED, subject=kid, details=how))
    published = list_published_keys(session=session, now=moment)
    return {"kid": kid, "keys": [key.as_json() for key in published]}
