"""Commands for alert integrations and their deliveries."""

from datetime import UTC, datetime
from typing import Any, BinaryIO

import click
import orjson

from domain.alerts.integrations import actions, delivery_actions
from domain.alerts.integrations.mapping_actions import (
    build_recognition_resource,
    change_mapping,
    recognize_with_answers,
)
from domain.alerts.integrations.mapping_types import AlertMappingBody
from domain.alerts.integrations.received_labels import list_labels
from domain.alerts.integrations.samples import MessageTexts
from domain.alerts.integrations.sender_warnings import list_warnings
from domain.alerts.integrations.trial_alerts import ReplayBody
from domain.alerts.integrations.types import KeyRotation
from domain.core.database.pagination import MAX_ID
from domain.core.durations import parse_duration
from domain.core.errors import InvalidError
from domain.core.grace_period import GracePeriod
from domain.core.types.validation import validate_body
from web.commands.action_commands import (
    PairType,
    build_command,
    build_command_group,
    collect_pairs,
)
from web.commands.execution import run_in_transaction
from web.commands.path_lookup import get_project_by_path
from web.http.unit_of_work import get_unit_of_work
from web.services import get_current_time, get_parser_settings

#: Maximum number of bytes read. It exceeds the size limit for samples, so that large samples are
#: rejected and not truncated.
_MAX_FILE_BYTES = 1024 * 1024
integrations = build_command_group(
    "integrations", f"{actions.__name__}:alert_integrations", "Manage alert integrations."
)
integrations.add_command(build_command(list_labels))
integrations.add_command(build_command(list_warnings))
deliveries = build_command_group(
    "deliveries",
    f"{delivery_actions.__name__}:alert_deliveries",
    "Show deliveries to alert integrations, or process them again.",
)


@integrations.command("reset-key")
@click.argument("project")
@click.argument("integration_id", metavar="ID", type=click.IntRange(1, MAX_ID))
@click.option(
    "--overlap",
    type=click.Choice([each.key for each in GracePeriod]),
    default=GracePeriod.DAY.key,
    show_default=True,
    help="How long the old key stays valid.",
)
@run_in_transaction
def reset_key_command(*, project: str, integration_id: int, overlap: str) -> dict[str, Any]:
    """Reset the key of an integration and print the new key."""
    unit = get_unit_of_work()
    rotation = KeyRotation(
        previous_key_expires_at=GracePeriod.from_key(overlap).compute_end(unit.now)
    )
    made = actions.rotate_key(unit, get_project_by_path(project), integration_id, rotation)
    return {"id": integration_id, "url": made.url, "key": made.key}


@integrations.command("recognize")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--sample-repeat",
    "--repeat",
    type=click.File("rb"),
    help="File with another message about the same problem.",
)
@click.option(
    "--sample-recovery",
    "--recovery",
    type=click.File("rb"),
    help="File with the message about the recovery.",
)
@click.option(
    "--answer",
    "answers",
    type=PairType(),
    multiple=True,
    callback=collect_pairs,
    help="Answer to a question, by the name of the question. Can be repeated.",
)
@run_in_transaction
def recognize_payload_command(
    *,
    file: BinaryIO,
    sample_repeat: BinaryIO | None,
    sample_recovery: BinaryIO | None,
    answers: dict[str, str] | None,
) -> dict[str, Any]:
    """Detect the tool that sent the message in FILE, and propose a mapping.

    Use - for standard input.
    """
    texts = MessageTexts(
        sample=_read_text(file, "sample"),
        repeat=_read_text(sample_repeat, "sample_repeat"),
        recovery=_read_text(sample_recovery, "sample_recovery"),
    )
    found = recognize_with_answers(
        texts, answers or {}, now=get_current_time(), reading=get_parser_settings()
    )
    return build_recognition_resource(found).model_dump(mode="json")


def _read_text(file: BinaryIO | None, field: str) -> str:
    """Return the text of a file, or an empty string if there is no file."""
    try:
        return file.read(_MAX_FILE_BYTES).decode() if file else ""
    except UnicodeDecodeError as error:
        raise InvalidError(f"The file of `{field}` is not UTF-8.", field=field) from error


@integrations.command("map")
@click.argument("project")
@click.argument("integration_id", metavar="ID", type=click.IntRange(1, MAX_ID))
@click.argument("file", type=click.File("rb"))
@run_in_transaction
def map_command(*, project: str, integration_id: int, file: BinaryIO) -> dict[str, Any]:
    """Save a sample and a mapping for an integration.

    FILE contains the output of `gatebell integrations recognize`. Use - for standard input.
    """
    try:
        given = orjson.loads(file.read(_MAX_FILE_BYTES))
    except orjson.JSONDecodeError as error:
        raise InvalidError(f"`FILE` is not JSON: {error}.", field="file") from error
    if not isinstance(given, dict):
        raise InvalidError("`FILE` is not a JSON object.", field="file")
    body = validate_body(AlertMappingBody, given)
    saved = change_mapping(get_unit_of_work(), get_project_by_path(project), integration_id, body)
    return saved.model_dump(mode="json")


@deliveries.command("replay")
@click.argument("project")
@click.argument("integration_id", metavar="INTEGRATION", type=click.IntRange(1, MAX_ID))
@click.option("--last", help="Length of the period, such as 30m, 2h or 1d12h.")
@click.option(
    "--since", help="Start of the period, such as 2026-12-06T02:00:00Z, instead of --last."
)
@click.option("--until", help="End of the period. The default is now.")
@run_in_transaction
def replay_deliveries_command(
    *, project: str, integration_id: int, last: str | None, since: str | None, until: str | None
) -> dict[str, Any]:
    """Reprocess the deliveries rejected during a period, using the current mapping.

    Each delivery is stored at most once.
    """
    found, end = (
        get_project_by_path(project),
        _parse_time(until, "until") if until else get_current_time(),
    )
    begin = _parse_period_start(last, since, end)
    replayed: list[int] = []
    still_refused: list[int] = []
    after: int | None = 0
    while after is not None:
        period = ReplayBody(since=begin, until=end, after=after)
        result = delivery_actions.replay_deliveries(
            get_unit_of_work(), found, integration_id, period
        )
        replayed += result.replayed
        still_refused += result.still_refused
        after = result.next_after
    return {"replayed": replayed, "still_refused": still_refused}


def _parse_period_start(last: str | None, since: str | None, end: datetime) -> datetime:
    if (last is None) == (since is None):
        raise InvalidError("Use either `--last` or `--since`.", field="since")
    if since is not None:
        return _parse_time(since, "since")
    try:
        return end - parse_duration(last or "", field="last")
    except OverflowError as error:
        raise InvalidError("`--last` is too long.", field="last") from error


def _parse_time(text: str, field: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (OverflowError, ValueError) as error:
        message = (
            f'`--{field}` "{text[:40]}" is not a time. Use a time such as 2026-12-06T02:00:00Z.'
        )
        raise InvalidError(message, field=field) from error
    example = f"{moment.isoformat(timespec='seconds')}Z"
    raise InvalidError(f"`--{field}` must have an offset, such as {example}.", field=field)
