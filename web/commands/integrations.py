"""Commands about the integrations that receive alerts."""

from typing import Any, BinaryIO

import click

from domain.alerts.integrations import actions
from domain.alerts.integrations.mapping_actions import shown_recognition
from domain.alerts.integrations.recognition import recognize
from domain.alerts.integrations.types import KeyRotation
from domain.database.paging import LARGEST_ID
from domain.errors import InvalidError
from domain.grace_period import GracePeriod
from web.commands.generated import commands_of
from web.commands.operator import project_at
from web.commands.transaction import one_transaction
from web.http.work import work
from web.services import now, reading

#: In bytes: more than a sample can have, so that one of these is refused and not cut.
_LONGEST_FILE = 1024 * 1024

integrations = commands_of(
    "integrations", actions.__name__, "alert_integrations", "Alert integrations of projects."
)


@integrations.command("reset-key")
@click.argument("project")
@click.argument("integration_id", metavar="ID", type=click.IntRange(1, LARGEST_ID))
@click.option(
    "--overlap",
    type=click.Choice([each.key for each in GracePeriod]),
    default=GracePeriod.DAY.key,
    show_default=True,
    help="How long the old key is accepted beside the new one.",
)
@one_transaction
def reset_key_command(*, project: str, integration_id: int, overlap: str) -> dict[str, Any]:
    """Create a new key of the integration ID of PROJECT and print it."""
    unit = work()
    rotation = KeyRotation(previous_key_expires_at=GracePeriod.of(overlap).until(unit.now))
    made = actions.rotate_key(unit, project_at(project), integration_id, rotation)
    return {"id": integration_id, "url": made.url, "key": made.key}


@integrations.command("recognize")
@click.argument("file", type=click.File("rb"))
@one_transaction
def recognize_payload_command(*, file: BinaryIO) -> dict[str, Any]:
    """Say which tool posts what is in FILE (- for standard input), and propose a mapping."""
    body = file.read(_LONGEST_FILE)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        message = "The payload is not UTF-8."
        raise InvalidError(message, field="sample") from error
    found = recognize(text, now=now(), reading=reading())
    return shown_recognition(found).model_dump(mode="json")
