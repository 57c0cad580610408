"""Stores what a delivery said: all of it in one transaction, or nothing.

There are two ways. One firing alert on Postgres takes a single statement. Everything else locks
the project's counter, looks at what is there, lets `lifecycle.plan` decide, and writes. The lock
comes first and is the same for all, so two webhooks with the same items in opposite order wait
for each other and never deadlock.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, insert, select, update

from domain.alerts import express
from domain.alerts.incoming import IncomingAlert, ParsedBody, State
from domain.alerts.lifecycle import Action, Existing, ExistingAnswer, NewAlert, Plan, plan
from domain.alerts.parcel import Parcel, alert_values
from domain.hot import HotConnection
from models import Alert, AlertCounter, Delivery

RESOLVED = "resolved"
TRIGGERED = "triggered"
#: Databases limit how many values one statement may carry.
_CHUNK = 5000


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceiptItem:
    """An alert that the delivery touched."""

    iid: int
    title: str
    action: Action


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """What a delivery did: one item an alert, in the order of the body's items."""

    items: tuple[ReceiptItem, ...]


def remarks_of(parsed: ParsedBody) -> list[str]:
    """Return everything that a maintainer should know about how the body was read."""
    remarks = list(parsed.remarks)
    is_batch = len(parsed.alerts) + len(parsed.refused) > 1
    for alert in parsed.alerts:
        prefix = f"Item {alert.item_index + 1}: " if is_batch else ""
        remarks.extend(prefix + remark for remark in alert.remarks)
    remarks.extend(
        f"Item {refused.item_index + 1} was refused: {refused.reason}" for refused in parsed.refused
    )
    return remarks[:_REMARKS_KEPT]


#: A body of 5,000 bad items need not say so 5,000 times.
_REMARKS_KEPT = 100


def receive(parsed: ParsedBody, parcel: Parcel, *, hot: HotConnection) -> Receipt:
    """Store the alerts of a body and return what became of each."""
    if hot.dialect_name == "postgresql" and _is_express(parsed):
        remarks = remarks_of(parsed)
        iid, title, is_new = express.store(parsed.alerts[0], parcel, remarks, hot=hot)
        action = Action.OPENED if is_new else Action.JOINED
        return Receipt(items=(ReceiptItem(iid=iid, title=title, action=action),))
    return hot.transact(lambda: _store(parsed, parcel, hot=hot))


def _is_express(parsed: ParsedBody) -> bool:
    return (
        len(parsed.alerts) == 1
        and not parsed.refused
        and parsed.alerts[0].state is State.FIRING
        and parsed.alerts[0].fingerprint is not None
    )


_LOCK_COUNTER = (
    select(AlertCounter.last_iid)
    .where(AlertCounter.project_id == bindparam("project_id"))
    .with_for_update()
)


def _store(parsed: ParsedBody, parcel: Parcel, *, hot: HotConnection) -> Receipt:
    last_iid = hot.all(_LOCK_COUNTER, {"project_id": parcel.project_id})[0][0]
    existing = _existing(parsed.alerts, parcel.project_id, hot=hot)
    decided = plan(parsed.alerts, existing)
    _update_existing(decided, parcel, hot=hot)
    delivery_id = _store_delivery(parsed, decided, parcel, hot=hot)
    _store_new(decided.new, parcel, (delivery_id, last_iid), hot=hot)
    return Receipt(items=_answers(decided, last_iid))


_EXISTING_COLUMNS = select(Alert.id, Alert.iid, Alert.title, Alert.fingerprint)

_OPEN = _EXISTING_COLUMNS.where(
    Alert.project_id == bindparam("project_id"),
    Alert.fingerprint.in_(bindparam("fingerprints", expanding=True)),
    Alert.status != RESOLVED,
)

_LAST_RESOLVED = (
    _EXISTING_COLUMNS.where(
        Alert.project_id == bindparam("project_id"),
        Alert.fingerprint == bindparam("fingerprint"),
    )
    .order_by(Alert.id.desc())
    .limit(1)
)


def _existing(
    alerts: Sequence[IncomingAlert], project_id: int, *, hot: HotConnection
) -> dict[bytes, Existing]:
    """Return the open alert of each fingerprint; for recoveries else the last resolved one."""
    wanted = list({alert.fingerprint for alert in alerts if alert.fingerprint is not None})
    found: dict[bytes, Existing] = {}
    for start in range(0, len(wanted), _CHUNK):
        rows = hot.all(
            _OPEN, {"project_id": project_id, "fingerprints": wanted[start : start + _CHUNK]}
        )
        for row in rows:
            found[row.fingerprint] = Existing(row.id, row.iid, row.title, is_open=True)
    recovering = {alert.fingerprint for alert in alerts if alert.state is State.RECOVERY}
    for fingerprint in recovering - found.keys() - {None}:
        parameters = {"project_id": project_id, "fingerprint": fingerprint}
        for row in hot.all(_LAST_RESOLVED, parameters):
            found[row.fingerprint] = Existing(row.id, row.iid, row.title, is_open=False)
    return found


_RESOLVE = (
    update(Alert)
    .where(Alert.id == bindparam("alert_id"))
    .values(status=RESOLVED, ended_at=bindparam("ended"), last_event_at=bindparam("now"))
)

_BUMP = (
    update(Alert)
    .where(Alert.id == bindparam("alert_id"))
    .values(events=Alert.events + bindparam("more"), last_event_at=bindparam("now"))
)


def _update_existing(decided: Plan, parcel: Parcel, *, hot: HotConnection) -> None:
    now = parcel.received_at
    bumps = [
        {"alert_id": alert_id, "more": more, "now": now}
        for alert_id, more in sorted(decided.bumps.items())
    ]
    resolutions = [
        {"alert_id": alert_id, "ended": ended_at, "now": now}
        for alert_id, ended_at in sorted(decided.resolutions.items())
    ]
    for statement, rows in ((_BUMP, bumps), (_RESOLVE, resolutions)):
        if rows:
            hot.all(statement, rows)


_INSERT_DELIVERY = insert(Delivery).returning(Delivery.id)


def _store_delivery(
    parsed: ParsedBody, decided: Plan, parcel: Parcel, *, hot: HotConnection
) -> int:
    values = {
        "project_id": parcel.project_id,
        "integration_id": parcel.integration_id,
        "format": parcel.format,
        "is_test": parcel.is_test,
        "received_at": parcel.received_at,
        "status_code": 200,
        "sender": parcel.sender,
        "size": len(parcel.body),
        "body": parcel.body,
        "opened": decided.count(Action.OPENED) + decided.count(Action.STORED_AS_RESOLVED),
        "joined": decided.count(Action.JOINED),
        "resolved": decided.count(Action.RESOLVED),
        "remarks": remarks_of(parsed),
        "truncated_alerts": parsed.truncated_alerts,
    }
    delivery_id: int = hot.all(_INSERT_DELIVERY, values)[0][0]
    return delivery_id


_INSERT_ALERTS = insert(Alert)

_TAKE_NUMBERS = (
    update(AlertCounter)
    .where(AlertCounter.project_id == bindparam("of_project"))
    .values(last_iid=AlertCounter.last_iid + bindparam("more"))
)


def _store_new(
    new: Sequence[NewAlert], parcel: Parcel, place: tuple[int, int], *, hot: HotConnection
) -> None:
    if not new:
        return
    delivery_id, last_iid = place
    rows = [
        {
            **alert_values(each.incoming, parcel),
            "iid": last_iid + offset,
            "delivery_id": delivery_id,
            "events": each.events,
            "status": TRIGGERED if each.resolved_at is None else RESOLVED,
            "ended_at": each.resolved_at,
        }
        for offset, each in enumerate(new, start=1)
    ]
    hot.all(_INSERT_ALERTS, rows)
    hot.all(_TAKE_NUMBERS, {"of_project": parcel.project_id, "more": len(new)})


def _answers(decided: Plan, last_iid: int) -> tuple[ReceiptItem, ...]:
    items = []
    for answer in decided.answers_by_alert():
        if isinstance(answer, ExistingAnswer):
            iid, title = answer.iid, answer.title
        else:
            iid = last_iid + answer.index + 1
            title = decided.new[answer.index].incoming.title
        items.append(ReceiptItem(iid=iid, title=title, action=answer.action))
    return tuple(items)
