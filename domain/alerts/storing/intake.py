"""Stores the alerts of one delivery in a single transaction.

There are two ways to store a delivery:

- A single firing alert on Postgres is stored by one statement (`single_alert`). Exceptions are
possible late copies of a resolved alert, and alerts that another request has just opened. - Any
other delivery locks its project and reads the stored alerts with the same fingerprints. Then
`lifecycle.plan_intake` decides what to change, and `postgres_batch` or `sqlite_batch` writes the
plan.

The row of the project's alert counter is used as the lock. Each batch takes this lock before any
other lock. Therefore, two webhooks with the same items in opposite order wait for each other
instead of causing a deadlock. While a batch is being planned, the statement for a single alert may
open an alert that the batch also opens. Then the unique index on open fingerprints rejects the
batch, and `run_transaction` repeats it.

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

from domain.alerts.parsing.fingerprint import combine_with_monitor
from domain.alerts.parsing.incoming_alert import (
    AlertState,
    EventAction,
    IncomingAlert,
    ParsedBody,
    ParsedPagerDutyEvent,
)
from domain.alerts.storing import postgres_batch, single_alert, sqlite_batch
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake_result import IntakeItem, IntakeResult, build_intake_result
from domain.alerts.storing.lifecycle import (
    RESOLVED,
    TRIGGERED,
    Action,
    IntakePlan,
    ItemOutcome,
    plan_intake,
)
from domain.core.database.statements import StatementConnection, build_columns
from models import Alert, AlertNote

NO_OPEN_ALERT_WARNING = "No open alert has this dedup_key. Nothing was changed."
CHANGE_EVENT_WARNING = "Change events do not open alerts. They are only stored in this log."
_ACKNOWLEDGED = "acknowledged"


class OpenAlertRow(NamedTuple):
    """An alert, as selected by `OPEN_ALERT_QUERY`."""

    id: int
    iid: int
    title: str
    status: str


#: Query for an open alert. With `+ 0`, the planner can only use the indexes that begin with the
#: fingerprint (migration 0051).
OPEN_ALERT_QUERY = select(*build_columns(OpenAlertRow._fields, {"": Alert})).where(
    Alert.project_id + 0 == bindparam("project_id"),
    Alert.fingerprint == bindparam("fingerprint"),
    Alert.status != RESOLVED,
)

_ACKNOWLEDGE_ALERT = (
    update(Alert).where(Alert.id == bindparam("alert_id")).values(status=_ACKNOWLEDGED)
)
_INSERT_NOTE = insert(AlertNote)


def store_follow_up_event(
    parsed: ParsedBody,
    event: ParsedPagerDutyEvent,
    delivery: InboundDelivery,
    *,
    connection: StatementConnection,
) -> IntakeResult:
    """Store an event that is not a trigger, within the connection's transaction.

    The caller must have locked the project.
    """
    match event.action:
        case EventAction.RESOLVE:
            return _resolve_alert(parsed, delivery, connection=connection)
        case EventAction.ACKNOWLEDGE:
            return _acknowledge_alert(parsed, event, delivery, connection=connection)
    return _store_delivery_only(parsed, delivery, CHANGE_EVENT_WARNING, connection=connection)


def _get_batch_module(connection: StatementConnection) -> ModuleType:
    return postgres_batch if connection.dialect_name == "postgresql" else sqlite_batch


def _store_delivery_only(
    parsed: ParsedBody, delivery: InboundDelivery, *warnings: str, connection: StatementConnection
) -> IntakeResult:
    """Store a delivery that changes no alerts."""
    logged = replace(parsed, alerts=(), parse_warnings=(*parsed.parse_warnings, *warnings))
    nothing = IntakePlan((), Counter(), {}, {}, ())
    delivery_id, _ = _get_batch_module(connection).store_plan(
        nothing, logged, delivery, connection=connection
    )
    return IntakeResult(delivery_id=delivery_id, items=(), by_item=())


def _resolve_alert(
    parsed: ParsedBody, delivery: InboundDelivery, *, connection: StatementConnection
) -> IntakeResult:
    batch = _get_batch_module(connection)
    known = batch.find_existing_alerts(parsed.alerts, delivery.project_id, connection=connection)
    if all(each.ended_at is not None for each in known.values()):
        return _store_delivery_only(parsed, delivery, NO_OPEN_ALERT_WARNING, connection=connection)
    decided = plan_intake(parsed.alerts, known, delivery.arrival)
    delivery_id, iids = batch.store_plan(decided, parsed, delivery, connection=connection)
    return build_intake_result(decided, delivery_id, iids)


def _acknowledge_alert(
    parsed: ParsedBody,
    event: ParsedPagerDutyEvent,
    delivery: InboundDelivery,
    *,
    connection: StatementConnection,
) -> IntakeResult:
    parameters = {"project_id": delivery.project_id, "fingerprint": event.fingerprint}
    row = connection.fetch_first_row(OPEN_ALERT_QUERY, parameters)
    if row is None:
        return _store_delivery_only(parsed, delivery, NO_OPEN_ALERT_WARNING, connection=connection)
    found, logged = (
        OpenAlertRow._make(row),
        _store_delivery_only(parsed, delivery, connection=connection),
    )
    if found.status == TRIGGERED:
        connection.execute_statement(_ACKNOWLEDGE_ALERT, {"alert_id": found.id})
        connection.execute_statement(
            _INSERT_NOTE, _build_acknowledgement_values(found, delivery.received_at)
        )
    item = IntakeItem(iid=found.iid, title=found.title, action=Action.UNCHANGED)
    return replace(logged, items=(item,), by_item=(item,))


def _build_acknowledgement_values(found: OpenAlertRow, now: datetime) -> dict[str, object]:
    """Return the column values of the activity entry for a sender's acknowledgement.

    The entry has no user.
    """
    return {
        "alert_id": found.id,
        "user_id": None,
        "user_name": "",
        "kind": "status",
        "text": _ACKNOWLEDGED,
        "created_at": now,
    }


def store_alerts(
    parsed: ParsedBody, delivery: InboundDelivery, *, connection: StatementConnection
) -> IntakeResult:
    """Store the alerts in a body, and return the result for each alert.

    An event other than a trigger acknowledges or resolves the open alert with its fingerprint.
    """
    parsed = _combine_body_with_monitor(parsed, delivery)
    if connection.dialect_name == "postgresql" and _is_single_alert(parsed):
        result = single_alert.store_single_alert(parsed, delivery, connection=connection)
        if result is not None:
            return result
    return connection.run_transaction(
        partial(_store_as_batch, parsed, delivery, connection=connection)
    )


def store_alerts_in_transaction(
    parsed: ParsedBody, delivery: InboundDelivery, *, connection: StatementConnection
) -> IntakeResult:
    """Store the alerts in a body within the connection's transaction, always as a batch."""
    return _store_as_batch(
        _combine_body_with_monitor(parsed, delivery), delivery, connection=connection
    )


def _store_as_batch(
    parsed: ParsedBody, delivery: InboundDelivery, *, connection: StatementConnection
) -> IntakeResult:
    batch: ModuleType = sqlite_batch  # SQLite transactions exclude each other.
    if connection.dialect_name == "postgresql":
        batch = postgres_batch
        batch.lock_alert_counter(delivery.project_id, connection=connection)
    event = parsed.event
    if event is not None and event.action is not EventAction.TRIGGER:
        return store_follow_up_event(parsed, event, delivery, connection=connection)
    known = batch.find_existing_alerts(parsed.alerts, delivery.project_id, connection=connection)
    decided = plan_intake(parsed.alerts, known, delivery.arrival)
    delivery_id, iids = batch.store_plan(decided, parsed, delivery, connection=connection)
    return build_intake_result(decided, delivery_id, iids)


def preview_outcomes(
    alerts: Sequence[IncomingAlert], delivery: InboundDelivery, *, connection: StatementConnection
) -> tuple[ItemOutcome, ...]:
    """Return the outcome that each alert in a delivery would have, without changing anything."""
    batch = postgres_batch if connection.dialect_name == "postgresql" else sqlite_batch
    alerts = [_combine_alert_with_monitor(each, delivery) for each in alerts]
    known = batch.find_existing_alerts(alerts, delivery.project_id, connection=connection)
    return plan_intake(alerts, known, delivery.arrival).outcomes


def _combine_body_with_monitor(parsed: ParsedBody, delivery: InboundDelivery) -> ParsedBody:
    """Combine the fingerprints in a body with the monitor of its integration."""
    if not delivery.monitor_id:
        return parsed
    alerts = tuple(_combine_alert_with_monitor(each, delivery) for each in parsed.alerts)
    if (event := parsed.event) is None:
        return replace(parsed, alerts=alerts)
    identity = combine_with_monitor(event.fingerprint, delivery.monitor_id)
    return replace(parsed, alerts=alerts, event=replace(event, fingerprint=identity))


def _combine_alert_with_monitor(alert: IncomingAlert, delivery: InboundDelivery) -> IncomingAlert:
    if alert.fingerprint is None or not delivery.monitor_id:
        return alert
    return replace(alert, fingerprint=combine_with_monitor(alert.fingerprint, delivery.monitor_id))


def _is_single_alert(parsed: ParsedBody) -> bool:
    return (
        len(parsed.alerts) == 1
        and not parsed.refused
        and parsed.alerts[0].state is AlertState.FIRING
        and parsed.alerts[0].fingerprint is not None
    )
