"""Requests to receivers that are not stored yet, and the column values for storing them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import perf_counter_ns

from domain.alerts.formats.base import AlertFormat
from domain.alerts.parsing.incoming_alert import IncomingAlert
from domain.alerts.parsing.mapping import NO_FIELD_MAPPING, FieldMapping
from domain.alerts.storing.lifecycle import Arrival
from domain.core.database.statements import StatementConnection
from domain.core.errors import DomainError

#: Maximum value of the duration column, in microseconds, which is more than half an hour.
_MAX_DURATION_MICROSECONDS = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class ReceiverContext:
    """The dependencies and settings of receivers."""

    connection: StatementConnection
    #: Function that returns the size, in bytes, that a body of a format must not reach.
    body_limit: Callable[[AlertFormat], int]
    #: Period after a recovery during which copies of the resolved alert count as late.
    late_copies: timedelta
    #: Function that returns the status code of the response for an error.
    status_of: Callable[[DomainError], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class InboundDelivery:
    """The body of a request, its sender, and the integration that receives it."""

    project_id: int
    #: ID of the integration, or None for reports from the service itself.
    integration_id: int | None
    #: Name of the format.
    format: str
    #: Size of the body as received, in bytes. The size is also set if the body was rejected without
    #: being read.
    sender: str
    body: bytes = field(repr=False)
    #: Size of the body as received, in bytes. It is also set if the body was rejected without being
    #: read.
    size: int
    received_at: datetime
    #: Time at which the request arrived, measured by `time.perf_counter_ns`.
    began_ns: int
    #: Mapping for parsing the body.
    mapping: FieldMapping = NO_FIELD_MAPPING
    #: Monitor of the integration and its alerts.
    monitor_id: int | None = None
    is_test: bool = False
    #: User agent of the client. It is stored if the delivery is rejected.
    user_agent: str | None = None
    #: Period after a recovery during which copies of the resolved alert count as late. It is zero
    #: for bodies without copies.
    late_copies: timedelta = timedelta(0)
    #: Time at which a replayed body first arrived.
    first_received_at: datetime | None = None

    @property
    def arrival(self) -> Arrival:
        """Times that determine whether items are late copies."""
        first = min(self.first_received_at or self.received_at, self.received_at)
        return Arrival(
            self.received_at,
            recovered_after=first - self.late_copies,
            # The clock of the host that received the recovery may be ahead.
            recovered_before=self.received_at + self.late_copies,
        )


def build_delivery_values(delivery: InboundDelivery) -> dict[str, object]:
    """Return the column values for a delivery that do not depend on its outcome."""
    return {
        "project_id": delivery.project_id,
        "integration_id": delivery.integration_id,
        "format": delivery.format,
        "mapping": delivery.mapping.stored,
        "is_test": delivery.is_test,
        "received_at": delivery.received_at,
        "sender": delivery.sender,
        "size": delivery.size,
        "body": delivery.body or None,
        "duration": min(
            (perf_counter_ns() - delivery.began_ns) // 1_000, _MAX_DURATION_MICROSECONDS
        ),
    }


def build_alert_values(alert: IncomingAlert, delivery: InboundDelivery) -> dict[str, object]:
    """Return the column values for a new alert, based on its payload and its delivery."""
    return {
        "project_id": delivery.project_id,
        "integration_id": delivery.integration_id,
        "item_index": alert.item_index,
        "fingerprint": alert.fingerprint,
        "monitor_id": delivery.monitor_id,
        "severity": alert.severity.rank,
        "severity_reason": alert.severity_reason,
        "title": alert.title,
        "description": alert.description,
        "service": alert.service,
        "monitoring_tool": alert.monitoring_tool,
        "hosts": "\n".join(alert.hosts),
        "query": alert.query or "",
        "environment": alert.environment,
        "started_at": alert.started_at,
        "last_event_at": delivery.received_at,
        "created_at": delivery.received_at,
    }
