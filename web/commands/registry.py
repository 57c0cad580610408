"""Commands for the container registry's certificates, keys and configuration."""

from pathlib import Path
from typing import Any

import click
from flask.cli import AppGroup

from domain.registry.actions import rotate_key
from domain.registry.signing_keys import get_signer, list_keys
from domain.registry.types import RegistryKey
from web.commands.action_commands import build_command
from web.commands.execution import run_in_transaction
from web.extensions import db
from web.registry import build_full_configuration
from web.services import get_current_time, get_services

registry = AppGroup("registry", help="Configure the container registry.")
registry.add_command(build_command(rotate_key))


@registry.command("certificates")
@click.option(
    "--write",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write the certificates to.",
)
@run_in_transaction
def certificates_command(*, file: Path | None) -> dict[str, Any]:
    """Print or write the certificates that registries must trust (rootcertbundle)."""
    get_signer(session=db.session(), keyring=get_services().keyring, now=get_current_time())
    listed = list_keys(session=db.session(), keyring=get_services().keyring, now=get_current_time())
    bundle = "".join(key.certificate for key in listed)
    keys = [RegistryKey.model_validate(key).model_dump(mode="json") for key in listed]
    if file is None:
        return {"keys": keys, "certificates": bundle}
    try:
        file.write_text(bundle, encoding="ascii")
    except OSError as error:
        raise ValueError(f"{file} cannot be written: {error.strerror}.") from error
    return {"keys": keys, "written": str(file)}


@registry.command("configuration")
@run_in_transaction
def configuration_command() -> dict[str, str]:
    """Print a complete configuration for the registry, including the notification secret."""
    ready = build_full_configuration()
    return {"configuration": ready.file_content, "bundle": ready.bundle_url}
