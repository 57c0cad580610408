"""Stores the alerts of one delivery in a single transaction.

There are two ways to store a delivery:

- One firing alert on Postgres is stored by a single statement (`single_alert`), unless it may be
  a late copy of a resolved alert, or another request has just opened the same alert.
- Any other delivery locks its project, reads the stored alerts with the same fingerprints, lets
  `lifecycle.plan` decide, and writes the plan (`postgres_batch` or `sqlite_batch`).

The lock is the row of the project's alert counter. Each batch takes it before any other lock, so
two webhooks with the same items in opposite order wait for each other and never deadlock. If a
single alert opens an alert while a batch that would open it as well is being planned, the unique
index on open fingerprints rejects the batch, and `transact` runs it again.
"""

from collections.abc import Sequence
from functools import partial
from types import ModuleType

from domain.alerts.reading.incoming import AlertState, EventAction, IncomingAlert, ParsedBody
from domain.alerts.storing import follow_ups, postgres_batch, single_alert, sqlite_batch
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake_result import IntakeResult, result_of
from domain.alerts.storing.lifecycle import ItemOutcome, plan
from domain.database.statements import KeptConnection


def receive(
    parsed: ParsedBody, delivery: InboundDelivery, *, connection: KeptConnection
) -> IntakeResult:
    """Store the alerts of a body and return the result for each.

    An event that is no trigger acknowledges or resolves the open alert with its fingerprint.
    """
    if connection.dialect_name == "postgresql" and _is_single_alert(parsed):
        result = single_alert.store(parsed, delivery, connection=connection)
        if result is not None:
            return result
    return connection.transact(partial(receive_within, parsed, delivery, connection=connection))


def receive_within(
    parsed: ParsedBody, delivery: InboundDelivery, *, connection: KeptConnection
) -> IntakeResult:
    """Do the same in the transaction that the connection has begun, by a plan in any case."""
    batch: ModuleType = sqlite_batch  # whose transactions exclude each other
    if connection.dialect_name == "postgresql":
        batch = postgres_batch
        batch.lock_project(delivery.project_id, connection=connection)
    event = parsed.event
    if event is not None and event.action is not EventAction.TRIGGER:
        return follow_ups.store(parsed, event, delivery, connection=connection)
    known = batch.existing(parsed.alerts, delivery.project_id, connection=connection)
    decided = plan(parsed.alerts, known, delivery.arrival)
    delivery_id, iids = batch.store(decided, parsed, delivery, connection=connection)
    return result_of(decided, delivery_id, iids)


def preview(
    alerts: Sequence[IncomingAlert], delivery: InboundDelivery, *, connection: KeptConnection
) -> tuple[ItemOutcome, ...]:
    """Return the outcome that each alert of a delivery would have; change nothing."""
    batch = postgres_batch if connection.dialect_name == "postgresql" else sqlite_batch
    known = batch.existing(alerts, delivery.project_id, connection=connection)
    return plan(alerts, known, delivery.arrival).outcomes


def _is_single_alert(parsed: ParsedBody) -> bool:
    return (
        len(parsed.alerts) == 1
        and not parsed.refused
        and parsed.alerts[0].state is AlertState.FIRING
        and parsed.alerts[0].fingerprint is not None
    )
