"""Stores the alerts of one delivery in a single transaction.

There are two ways to store a delivery:

- A single firing alert on Postgres is stored by one statement (`single_alert`). Exceptions are
  possible late copies of a resolved alert, and alerts that another request has just opened.
- Any other delivery locks its project and reads the stored alerts with the same fingerprints. Then
  `lifecycle.plan` decides what to change, and `postgres_batch` or `sqlite_batch` writes the plan.

The lock is the row of the project's alert counter. Each batch takes it before any other lock.
Therefore, two webhooks with the same items in opposite order wait for each other instead of causing
a deadlock. A single alert may open an alert that is also part of a batch being planned. Then the
unique index on open fingerprints rejects the batch, and `transact` repeats it.

Events other than triggers acknowledge or resolve an open alert, or are only logged. Their delivery
is always stored, so that the log shows the outcome.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from types import ModuleType
from typing import NamedTuple

from sqlalchemy import bindparam, insert, select, update

from domain.alerts.reading.fingerprint import within_monitor
from domain.alerts.reading.incoming import (
    AlertState,
    EventAction,
    IncomingAlert,
    ParsedBody,
    SenderEvent,
)
from domain.alerts.storing import postgres_batch, single_alert, sqlite_batch
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake_result import IntakeItem, IntakeResult, result_of
from domain.alerts.storing.lifecycle import RESOLVED, TRIGGERED, Action, ItemOutcome, Plan, plan
from domain.core.database.statements import KeptConnection, columns_for
from models import Alert, AlertNote

NOTHING_OPEN = "No open alert has this dedup_key. Nothing was changed."
NO_ALERT = "Change events do not open alerts. They are only stored in this log."
_ACKNOWLEDGED = "acknowledged"


class OpenAlert(NamedTuple):
    """An alert, as selected by `OPEN`."""

    id: int
    iid: int
    title: str
    status: str


#: Query for an open alert. With `+ 0`, the planner can only use the indexes that begin with the
#: fingerprint (migration 0051).
OPEN = select(*columns_for(OpenAlert._fields, {"": Alert})).where(
    Alert.project_id + 0 == bindparam("project_id"),
    Alert.fingerprint == bindparam("fingerprint"),
    Alert.status != RESOLVED,
)

_ACKNOWLEDGE = update(Alert).where(Alert.id == bindparam("alert_id")).values(status=_ACKNOWLEDGED)
_NOTE = insert(AlertNote)


def store_follow_up(
    parsed: ParsedBody, event: SenderEvent, delivery: InboundDelivery, *, connection: KeptConnection
) -> IntakeResult:
    """Store an event that is not a trigger, within the transaction of the connection.

    The caller has locked the project.
    """
    match event.action:
        case EventAction.RESOLVE:
            return _resolve(parsed, delivery, connection=connection)
        case EventAction.ACKNOWLEDGE:
            return _acknowledge(parsed, event, delivery, connection=connection)
    return _log(parsed, delivery, NO_ALERT, connection=connection)


def _batch(connection: KeptConnection) -> ModuleType:
    return postgres_batch if connection.dialect_name == "postgresql" else sqlite_batch


def _log(
    parsed: ParsedBody, delivery: InboundDelivery, *warnings: str, connection: KeptConnection
) -> IntakeResult:
    """Store only the delivery."""
    logged = replace(parsed, alerts=(), parse_warnings=(*parsed.parse_warnings, *warnings))
    nothing = Plan((), Counter(), {}, {}, ())
    delivery_id, _ = _batch(connection).store(nothing, logged, delivery, connection=connection)
    return IntakeResult(delivery_id=delivery_id, items=(), by_item=())


def _resolve(
    parsed: ParsedBody, delivery: InboundDelivery, *, connection: KeptConnection
) -> IntakeResult:
    batch = _batch(connection)
    known = batch.existing(parsed.alerts, delivery.project_id, connection=connection)
    if all(each.ended_at is not None for each in known.values()):
        return _log(parsed, delivery, NOTHING_OPEN, connection=connection)
    decided = plan(parsed.alerts, known, delivery.arrival)
    delivery_id, iids = batch.store(decided, parsed, delivery, connection=connection)
    return result_of(decided, delivery_id, iids)


def _acknowledge(
    parsed: ParsedBody, event: SenderEvent, delivery: InboundDelivery, *, connection: KeptConnection
) -> IntakeResult:
    parameters = {"project_id": delivery.project_id, "fingerprint": event.fingerprint}
    row = connection.first(OPEN, parameters)
    if row is None:
        return _log(parsed, delivery, NOTHING_OPEN, connection=connection)
    found, logged = OpenAlert._make(row), _log(parsed, delivery, connection=connection)
    if found.status == TRIGGERED:
        connection.all(_ACKNOWLEDGE, {"alert_id": found.id})
        connection.all(_NOTE, _note(found, delivery.received_at))
    item = IntakeItem(iid=found.iid, title=found.title, action=Action.UNCHANGED)
    return replace(logged, items=(item,), by_item=(item,))


def _note(found: OpenAlert, now: datetime) -> dict[str, object]:
    """Return an entry of the activity without a user, since the sender acknowledged the alert."""
    return {
        "alert_id": found.id,
        "user_id": None,
        "user_name": "",
        "kind": "status",
        "text": _ACKNOWLEDGED,
        "created_at": now,
    }


def receive(
    parsed: ParsedBody, delivery: InboundDelivery, *, connection: KeptConnection
) -> IntakeResult:
    """Store the alerts of a body, and return the result for each.

    An event other than a trigger acknowledges or resolves the open alert with its fingerprint.
    """
    parsed = _within_monitor(parsed, delivery)
    if connection.dialect_name == "postgresql" and _is_single_alert(parsed):
        result = single_alert.store(parsed, delivery, connection=connection)
        if result is not None:
            return result
    return connection.transact(partial(_receive_within, parsed, delivery, connection=connection))


def receive_within(
    parsed: ParsedBody, delivery: InboundDelivery, *, connection: KeptConnection
) -> IntakeResult:
    """Store the alerts of a body within the transaction of the connection, always as a batch."""
    return _receive_within(_within_monitor(parsed, delivery), delivery, connection=connection)


def _receive_within(
    parsed: ParsedBody, delivery: InboundDelivery, *, connection: KeptConnection
) -> IntakeResult:
    batch: ModuleType = sqlite_batch  # Transactions of SQLite exclude each other.
    if connection.dialect_name == "postgresql":
        batch = postgres_batch
        batch.lock_project(delivery.project_id, connection=connection)
    event = parsed.event
    if event is not None and event.action is not EventAction.TRIGGER:
        return store_follow_up(parsed, event, delivery, connection=connection)
    known = batch.existing(parsed.alerts, delivery.project_id, connection=connection)
    decided = plan(parsed.alerts, known, delivery.arrival)
    delivery_id, iids = batch.store(decided, parsed, delivery, connection=connection)
    return result_of(decided, delivery_id, iids)


def preview(
    alerts: Sequence[IncomingAlert], delivery: InboundDelivery, *, connection: KeptConnection
) -> tuple[ItemOutcome, ...]:
    """Return the outcome that each alert of a delivery would have, without changing anything."""
    batch = postgres_batch if connection.dialect_name == "postgresql" else sqlite_batch
    alerts = [_identified(each, delivery) for each in alerts]
    known = batch.existing(alerts, delivery.project_id, connection=connection)
    return plan(alerts, known, delivery.arrival).outcomes


def _within_monitor(parsed: ParsedBody, delivery: InboundDelivery) -> ParsedBody:
    """Combine the fingerprints of a body with the monitor of its integration."""
    if not delivery.monitor_id:
        return parsed
    alerts = tuple(_identified(each, delivery) for each in parsed.alerts)
    if (event := parsed.event) is None:
        return replace(parsed, alerts=alerts)
    identity = within_monitor(event.fingerprint, delivery.monitor_id)
    return replace(parsed, alerts=alerts, event=replace(event, fingerprint=identity))


def _identified(alert: IncomingAlert, delivery: InboundDelivery) -> IncomingAlert:
    if alert.fingerprint is None or not delivery.monitor_id:
        return alert
    return replace(alert, fingerprint=within_monitor(alert.fingerprint, delivery.monitor_id))


def _is_single_alert(parsed: ParsedBody) -> bool:
    return (
        len(parsed.alerts) == 1
        and not parsed.refused
        and parsed.alerts[0].state is AlertState.FIRING
        and parsed.alerts[0].fingerprint is not None
    )
