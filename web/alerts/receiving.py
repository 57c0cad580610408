"""The steps that all receivers of alerts share, after the integration was found."""

from collections.abc import Callable
from datetime import datetime, timedelta

from flask import request

from domain import threads
from domain.alerts.reading.incoming import ParsedBody
from domain.alerts.receiving import receivers, refusals
from domain.alerts.receiving.receivers import LiveKey, Receiver
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake import receive
from domain.alerts.storing.intake_result import IntakeResult
from domain.errors import DomainError
from web.alerts.delivery_limits import check_rate
from web.http.errors import status_of
from web.metrics import count_alerts
from web.services import Services, services, settings
from web.settings.reader import Settings

#: The largest size that the column holds, in bytes; a sender may declare more.
_LARGEST_SIZE = 2**31 - 1
#: In bytes. Larger bodies are parsed in a thread, since that takes several milliseconds.
_WORTH_A_THREAD = 2**16
#: In bytes. After a larger body the connection is closed, since it keeps the memory of its largest
#: statement.
_WORTH_A_CONNECTION = 2**19


def inbound_delivery(
    receiver: Receiver, moment: datetime, began_ns: int, current: Settings
) -> InboundDelivery:
    """Return the delivery of this request without its body, which may not have been read yet."""
    return InboundDelivery(
        project_id=receiver.project_id,
        integration_id=receiver.integration_id,
        format=receiver.format.name,
        sender=request.remote_addr or "",
        body=b"",
        size=min(request.content_length or 0, _LARGEST_SIZE),
        received_at=moment,
        began_ns=began_ns,
        mapping=receiver.mapping,
        user_agent=request.environ.get("HTTP_USER_AGENT"),
        late_copies=timedelta(seconds=current.late_copy_seconds),
    )


def store(
    receiver: Receiver,
    key: LiveKey,
    delivery: InboundDelivery,
    read: Callable[[], ParsedBody],
    *,
    own: Services,
) -> tuple[ParsedBody, IntakeResult]:
    """Read and store a body; return what it says and what came of it."""
    parsed = threads.reading.run(read) if delivery.size > _WORTH_A_THREAD else read()
    check_rate(receiver)
    moment = delivery.received_at
    if key.last_used_at is None or moment - key.last_used_at >= receivers.USE_RESOLUTION:
        receivers.record_use(receiver, key, connection=own.connections, now=moment)
    result = receive(parsed, delivery, connection=own.connections)
    if delivery.size > _WORTH_A_CONNECTION:
        own.connections.close_last_used()
    actions = [item.action for item in result.items]
    for action in set(actions):
        count_alerts(action.value, actions.count(action))
    return parsed, result


def log_refusal(delivery: InboundDelivery, error: DomainError) -> None:
    """Log the refusal as a row, or add it to the count of an earlier one."""
    count_alerts("refused", 1)
    sampler, connection, status = services().refusals, services().connections, status_of(error)
    kind = (delivery.integration_id, status)
    per_minute = settings().refused_delivery_samples_per_minute
    if sampler.gets_row(kind, now=delivery.received_at, per_minute=per_minute):
        row = refusals.store_refusal(delivery, status, error, connection=connection)
        refusals.flush(sampler.use_row(kind, row), connection=connection)
    refusals.flush(sampler.due(now=delivery.received_at), connection=connection)
