"""Commands about what senders posted to alert integrations."""

from datetime import UTC, datetime
from typing import Any

import click
from flask.cli import AppGroup

from domain.alerts.deliveries import log
from domain.alerts.deliveries.log import DeliveryFilter
from domain.alerts.handling.occurrences import touched_alerts
from domain.alerts.integrations.integrations import get_receiver
from domain.alerts.integrations.replays import Period
from domain.alerts.integrations.types import IntegrationView
from domain.alerts.listing.types import alert_url
from domain.database.paging import LARGEST_ID, Slice
from domain.durations import parse_duration
from domain.errors import InvalidError
from domain.projects.views import ProjectView
from web.alerts.user_deliveries import replay_period, send_again
from web.api.schemas.alerts.alert_deliveries import (
    SELECTIONS,
    DeliveredAlert,
    Delivery,
    DeliveryDetail,
)
from web.commands.operator import project_at
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.work import work
from web.services import now, settings

_MOST_LISTED = 100
#: As whom a body is sent again.
_SENDER = "command line"
_NUMBER = click.IntRange(1, LARGEST_ID)
_OF_INTEGRATION = click.argument("integration_id", metavar="INTEGRATION", type=_NUMBER)
_ID = click.argument("delivery_id", metavar="ID", type=_NUMBER)

deliveries = AppGroup("deliveries", help="What senders posted to alert integrations.")


@deliveries.command("list")
@click.argument("project")
@_OF_INTEGRATION
@click.option("--show", type=click.Choice(list(SELECTIONS)), default="all", show_default=True)
@click.option("--before", type=_NUMBER, help="From next_before, for those that follow.")
@one_transaction
def list_deliveries_command(
    *, project: str, integration_id: int, show: str, before: int | None
) -> dict[str, Any]:
    """List up to 100 deliveries to INTEGRATION of PROJECT, the newest first."""
    integration = get_receiver(work(), project_at(project), integration_id)
    wanted = DeliveryFilter(integration_id=integration.id, show=SELECTIONS[show])
    part = Slice(size=_MOST_LISTED, before=before)
    page = log.list_deliveries(wanted, part, session=db.session())
    return {
        "deliveries": [Delivery.of(each).model_dump(mode="json") for each in page.items],
        "next_before": page.next_before,
    }


@deliveries.command("show")
@click.argument("project")
@_OF_INTEGRATION
@_ID
@one_transaction
def show_delivery_command(*, project: str, integration_id: int, delivery_id: int) -> dict[str, Any]:
    """Show the delivery ID to INTEGRATION of PROJECT, with its body."""
    found = project_at(project)
    return _shown(found, get_receiver(work(), found, integration_id), delivery_id)


@deliveries.command("resend")
@click.argument("project")
@_OF_INTEGRATION
@_ID
@one_transaction
def resend_delivery_command(
    *, project: str, integration_id: int, delivery_id: int
) -> dict[str, Any]:
    """Store the body of the delivery ID as a new one, read with the current mapping."""
    found = project_at(project)
    integration = get_receiver(work(), found, integration_id)
    resent = send_again(integration, delivery_id, sender=_SENDER)
    return _shown(found, integration, resent.delivery_id)


@deliveries.command("replay")
@click.argument("project")
@_OF_INTEGRATION
@click.option("--last", help="Those that arrived in the last 30m, 2h, 1d12h …")
@click.option("--since", help="Or those from then on, such as 2026-12-06T02:00:00Z.")
@click.option("--until", help="Until then; by default until now.")
@one_transaction
def replay_deliveries_command(
    *, project: str, integration_id: int, last: str | None, since: str | None, until: str | None
) -> dict[str, Any]:
    """Store the refused deliveries of a period, read with the current mapping: each once."""
    integration = get_receiver(work(), project_at(project), integration_id)
    end = _moment(until, "until") if until else now()
    period = Period(since=_begin(last, since, end), until=end)
    replayed: list[int] = []
    still_refused: list[int] = []
    while True:
        result = replay_period(integration, period, sender=_SENDER)
        replayed += result.replayed
        still_refused += result.still_refused
        if result.next_after is None:
            return {"replayed": replayed, "still_refused": still_refused}
        period = Period(since=period.since, until=end, after=result.next_after)


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


def _shown(project: ProjectView, integration: IntegrationView, delivery_id: int) -> dict[str, Any]:
    delivery = log.get_delivery(integration.id, delivery_id, session=db.session())
    alerts = [
        DeliveredAlert.of(each, alert_url(project.path, each.iid, settings().base_url))
        for each in touched_alerts(delivery.id, session=db.session())
    ]
    return DeliveryDetail.of_detail(delivery, alerts).model_dump(mode="json")
