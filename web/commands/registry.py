"""Commands about the container registry: its certificates, its keys, and a ready configuration."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from flask.cli import AppGroup

from domain.audit.events import Event, EventKind
from domain.registry.configuration import RegistryConfiguration
from domain.registry.signing_keys import (
    LONGEST_NOTICE,
    USUAL_NOTICE,
    KeyStatus,
    forget_former_keys,
    get_signer,
    list_keys,
    rotate,
)
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.audit_events import record_event
from web.registry.notification_secrets import notification_secrets
from web.services import now, services, settings

registry = AppGroup("registry", help="The container registry.")
_HOURS, _MOST_HOURS = (int(each.total_seconds() // 3600) for each in (USUAL_NOTICE, LONGEST_NOTICE))


@registry.command("certificates")
@click.option(
    "--write", "file", type=click.Path(dir_okay=False, path_type=Path), help="File to write."
)
@one_transaction
def certificates_command(*, file: Path | None) -> dict[str, Any]:
    """Print or write the certificates that registries have to trust (rootcertbundle)."""
    get_signer(session=db.session(), keyring=services().keyring, now=now())
    listed = _listed()
    bundle = "".join(key.certificate for key in listed)
    keys = [key.as_json() for key in listed]
    if file is None:
        return {"keys": keys, "certificates": bundle}
    try:
        file.write_text(bundle, encoding="ascii")
    except OSError as error:
        message = f"{file} cannot be written: {error.strerror}."
        raise ValueError(message) from error
    return {"keys": keys, "written": str(file)}


@registry.command("rotate-key")
@click.option(
    "--notice-hours",
    type=click.IntRange(0, _MOST_HOURS),
    default=_HOURS,
    show_default=True,
    help="Hours until the new key signs, to copy its certificate to every registry.",
)
@click.option("--forget-former", is_flag=True, help="Withdraw all former keys immediately.")
@one_transaction
def rotate_key_command(*, notice_hours: int, forget_former: bool) -> dict[str, Any]:
    """Create a key that signs after a notice period; former keys stay valid for another day."""
    session, keyring, moment = db.session(), services().keyring, now()
    notice = timedelta(hours=notice_hours)
    kid = rotate(notice, session=session, keyring=keyring, now=moment)
    if forget_former:
        forget_former_keys(session=session, keyring=keyring, now=moment)
    details = {"notice_hours": notice_hours, "forget_former": forget_former}
    record_event(Event(kind=EventKind.REGISTRY_KEY_ROTATED, subject=kid, details=details))
    return {"kid": kid, "keys": [key.as_json() for key in _listed()]}


@registry.command("configuration")
@one_transaction
def configuration_command() -> dict[str, str]:
    """Print a complete configuration, with the secret of the notifications."""
    ready = RegistryConfiguration(
        base_url=settings().base_url, notification_secret=notification_secrets()[0]
    )
    return {"configuration": ready.text, "bundle": ready.bundle_url}


def _listed() -> tuple[KeyStatus, ...]:
    return list_keys(session=db.session(), keyring=services().keyring, now=now())
