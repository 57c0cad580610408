"""Stores events that are no triggers: they acknowledge or resolve an open alert, or are logged.

The delivery is stored in any case, so that the log has what came of it.
"""

from collections import Counter
from dataclasses import replace
from datetime import datetime
from types import ModuleType
from typing import NamedTuple

from sqlalchemy import bindparam, insert, select, update

from domain.alerts.reading.incoming import EventAction, ParsedBody, SenderEvent
from domain.alerts.storing import postgres_batch, sqlite_batch
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake_result import IntakeItem, IntakeResult, result_of
from domain.alerts.storing.lifecycle import RESOLVED, TRIGGERED, Action, Plan, plan
from domain.database.statements import KeptConnection, columns_for
from models import Alert, AlertNote

NOTHING_OPEN = "No open alert has this dedup_key: nothing was changed."
NO_ALERT = "A change event does not open an alert: it is only kept in this log."
_ACKNOWLEDGED = "acknowledged"


class OpenAlert(NamedTuple):
    """An alert, as `OPEN` finds it."""

    id: int
    iid: int
    title: str
    status: str


#: `+ 0` leaves the planner only the indexes that begin with the fingerprint (migration 0051).
OPEN = select(*columns_for(OpenAlert._fields, {"": Alert})).where(
    Alert.project_id + 0 == bindparam("project_id"),
    Alert.fingerprint == bindparam("fingerprint"),
    Alert.status != RESOLVED,
)

_ACKNOWLEDGE = update(Alert).where(Alert.id == bindparam("alert_id")).values(status=_ACKNOWLEDGED)
_NOTE = insert(AlertNote)


def store(
    parsed: ParsedBody, event: SenderEvent, delivery: InboundDelivery, *, connection: KeptConnection
) -> IntakeResult:
    """Store such an event in the transaction that the connection has begun; it has the lock."""
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
    """Store the delivery alone."""
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
    """Return the entry of the activity, which names nobody: the sender did it."""
    return {
        "alert_id": found.id,
        "user_id": None,
        "user_name": "",
        "kind": "status",
        "text": _ACKNOWLEDGED,
        "created_at": now,
    }
