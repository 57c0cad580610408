"""Commands about what senders posted to alert integrations."""

from datetime import UTC, datetime
from typing import Any

import click

from domain.alerts.integrations import delivery_actions as actions
from domain.alerts.integrations.delivery_types import ReplayBody
from domain.database.paging import LARGEST_ID
from domain.durations import parse_duration
from domain.errors import InvalidError
from web.commands.generated import commands_of
from web.commands.operator import project_at
from web.commands.transaction import one_transaction
from web.http.work import work
from web.services import now

deliveries = commands_of(
    "deliveries",
    actions.__name__,
    "alert_deliveries",
    "What senders posted to alert integrations.",
)


@deliveries.command("replay")
@click.argument("project")
@click.argument("integration_id", metavar="INTEGRATION", type=click.IntRange(1, LARGEST_ID))
@click.option("--last", help="Those that arrived in the last 30m, 2h, 1d12h …")
@click.option("--since", help="Or those from then on, such as 2026-12-06T02:00:00Z.")
@click.option("--until", help="Until then; by default until now.")
@one_transaction
def replay_deliveries_command(
    *, project: str, integration_id: int, last: str | None, since: str | None, until: str | None
) -> dict[str, Any]:
    """Store the refused deliveries of a period, read with the current mapping: each once."""
    found, end = project_at(project), _moment(until, "until") if until else now()
    begin = _begin(last, since, end)
    replayed: list[int] = []
    still_refused: list[int] = []
    after: int | None = 0
    while after is not None:
        period = ReplayBody(since=begin, until=end, after=after)
        result = actions.replay_deliveries(work(), found, integration_id, period)
        replayed += result.replayed
        still_refused += result.still_refused
        after = result.next_after
    return {"replayed": replayed, "still_refused": still_refused}


def _begin(last: str | None, since: str | None, end: datetime) -> datetime:
    if (last is None) == (since is None):
        message = "Give either --last or --since."
        raise InvalidError(message, field="since")
    if since is not None:
        return _moment(since, "since")
    try:
        return end - parse_duration(last or "", field="last")
    except OverflowError as error:
        message = "--last is too long."
        raise InvalidError(message, field="last") from error


def _moment(text: str, field: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        zoned = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        return zoned.astimezone(UTC)
    except (OverflowError, ValueError) as error:
        message = f"“{text[:40]}” is not a time such as 2026-12-06T02:00:00Z."
        raise InvalidError(message, field=field) from error
