"""Stores what a delivery said: all of it in one transaction, or nothing.

There are two ways. One firing alert on Postgres takes a single statement. Everything else locks
the project's counter, looks at what is there, lets `lifecycle.plan` decide, and writes. The lock
comes first and is the same for all, so two webhooks with the same items in opposite order wait
for each other and never deadlock. Should a single alert open meanwhile what a webhook wants to
open, the index of open fingerprints refuses the webhook, which then looks again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Executable, bindparam, func, insert, select, text, update

from domain.alerts import express
from domain.alerts.incoming import IncomingAlert, ParsedBody, State
from domain.alerts.lifecycle import Action, Answer, Existing, ExistingAnswer, NewAlert, Plan, plan
from domain.alerts.parcel import Parcel, alert_values, delivery_values
from domain.alerts.remarks import remarks_of
from domain.hot import HotConnection
from models import Alert, AlertCounter, Delivery, Occurrence

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
    """What a delivery did."""

    delivery_id: int
    #: One for each alert, in the order of the body's items.
    items: tuple[ReceiptItem, ...]
    #: One for each item that is an alert, in order.
    by_item: tuple[ReceiptItem, ...]


def receive(parsed: ParsedBody, parcel: Parcel, *, hot: HotConnection) -> Receipt:
    """Store the alerts of a body and return what became of each."""
    if hot.dialect_name == "postgresql" and _is_express(parsed):
        return _store_one(parsed, parcel, hot=hot)
    return hot.transact(lambda: _store(parsed, parcel, hot=hot))


def foresee(
    alerts: Sequence[IncomingAlert], project_id: int, *, hot: HotConnection
) -> tuple[Answer, ...]:
    """Return what would become of each item if it came now, and change nothing."""
    return plan(alerts, _existing(alerts, project_id, hot=hot)).answers


def _store_one(parsed: ParsedBody, parcel: Parcel, *, hot: HotConnection) -> Receipt:
    stored = express.store(parsed.alerts[0], parcel, remarks_of(parsed), hot=hot)
    action = Action.OPENED if stored.is_new else Action.JOINED
    items = (ReceiptItem(iid=stored.iid, title=stored.title, action=action),)
    return Receipt(delivery_id=stored.delivery_id, items=items, by_item=items)


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
    numbers = _take_numbers(len(decided.new), parcel.project_id, last_iid, hot=hot)
    new_ids = _store_new(decided.new, parcel, (delivery_id, numbers), hot=hot)
    _store_occurrences(parsed.alerts, decided, (delivery_id, new_ids), hot=hot)
    return Receipt(
        delivery_id=delivery_id,
        items=_receipts(decided.answers_by_alert(), decided, numbers),
        by_item=_receipts(decided.answers, decided, numbers),
    )


#: Not a bare column: so only indexes that begin with the fingerprint can be used (migration 0007).
_OF_PROJECT = Alert.project_id + 0 == bindparam("project_id")
_EXISTING_COLUMNS = select(Alert.id, Alert.iid, Alert.title, Alert.fingerprint, Alert.status)

_OPEN = _EXISTING_COLUMNS.where(
    _OF_PROJECT,
    Alert.fingerprint.in_(bindparam("fingerprints", expanding=True)),
    Alert.status != RESOLVED,
)

_LAST_RESOLVED = _EXISTING_COLUMNS.where(
    Alert.id.in_(
        select(func.max(Alert.id))
        .where(
            _OF_PROJECT,
            Alert.fingerprint.in_(bindparam("fingerprints", expanding=True)),
        )
        .group_by(Alert.fingerprint)
    )
)


def _existing(
    alerts: Sequence[IncomingAlert], project_id: int, *, hot: HotConnection
) -> dict[bytes, Existing]:
    """Return the open alert of each fingerprint; for recoveries else the last resolved one."""
    wanted = {alert.fingerprint for alert in alerts if alert.fingerprint is not None}
    found = _look_up(_OPEN, wanted, project_id, hot=hot)
    recovering = {alert.fingerprint for alert in alerts if alert.state is State.RECOVERY}
    late = {each for each in wanted if each in recovering and each not in found}
    return found | _look_up(_LAST_RESOLVED, late, project_id, hot=hot)


def _look_up(
    statement: Executable, fingerprints: set[bytes], project_id: int, *, hot: HotConnection
) -> dict[bytes, Existing]:
    wanted, found = list(fingerprints), {}
    for start in range(0, len(wanted), _CHUNK):
        parameters = {"project_id": project_id, "fingerprints": wanted[start : start + _CHUNK]}
        for row in hot.all(statement, parameters):
            is_open = row.status != RESOLVED
            found[row.fingerprint] = Existing(row.id, row.iid, row.title, is_open=is_open)
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
        **delivery_values(parcel),
        "status_code": 200,
        "opened": decided.count(Action.OPENED) + decided.count(Action.STORED_AS_RESOLVED),
        "joined": decided.count(Action.JOINED),
        "resolved": decided.count(Action.RESOLVED),
        "remarks": remarks_of(parsed),
        "truncated_alerts": parsed.truncated_alerts,
    }
    delivery_id: int = hot.all(_INSERT_DELIVERY, values)[0][0]
    return delivery_id


_INSERT_ALERTS = insert(Alert).returning(Alert.iid, Alert.id)

_COUNT_ON = (
    update(AlertCounter)
    .where(AlertCounter.project_id == bindparam("of_project"))
    .values(last_iid=AlertCounter.last_iid + bindparam("more"))
)
_NEXT_NUMBERS = text(
    "SELECT nextval(('alert_iids_' || :project_id)::regclass)::int AS iid "
    "FROM generate_series(1, :more)"
)


def _take_numbers(
    count: int, project_id: int, last_iid: int, *, hot: HotConnection
) -> Sequence[int]:
    """Return numbers for new alerts: of the project's sequence, or, on SQLite, of its counter."""
    if not count:
        return ()
    if hot.dialect_name == "postgresql":
        rows = hot.all(_NEXT_NUMBERS, {"project_id": project_id, "more": count})
        return [row.iid for row in rows]
    hot.all(_COUNT_ON, {"of_project": project_id, "more": count})
    return range(last_iid + 1, last_iid + count + 1)


def _store_new(
    new: Sequence[NewAlert],
    parcel: Parcel,
    place: tuple[int, Sequence[int]],
    *,
    hot: HotConnection,
) -> Sequence[int]:
    """Return the ids of the new alerts, in order."""
    if not new:
        return ()
    delivery_id, numbers = place
    rows = [
        {
            **alert_values(each.incoming, parcel),
            "iid": iid,
            "delivery_id": delivery_id,
            "events": each.events,
            "status": TRIGGERED if each.resolved_at is None else RESOLVED,
            "ended_at": each.resolved_at,
        }
        for iid, each in zip(numbers, new, strict=True)
    ]
    ids: dict[int, int] = dict(map(tuple, hot.all(_INSERT_ALERTS, rows)))
    return [ids[row["iid"]] for row in rows]


_INSERT_OCCURRENCES = insert(Occurrence)


def _store_occurrences(
    alerts: Sequence[IncomingAlert],
    decided: Plan,
    place: tuple[int, Sequence[int]],
    *,
    hot: HotConnection,
) -> None:
    delivery_id, new_ids = place
    rows = [
        {
            "alert_id": _alert_id(answer, new_ids),
            "delivery_id": delivery_id,
            "item_index": alert.item_index,
            "action": answer.action.rank,
        }
        for alert, answer in zip(alerts, decided.answers, strict=True)
    ]
    hot.all(_INSERT_OCCURRENCES, rows)


def _alert_id(answer: Answer, new_ids: Sequence[int]) -> int:
    return answer.alert_id if isinstance(answer, ExistingAnswer) else new_ids[answer.index]


def _receipts(
    answers: Iterable[Answer], decided: Plan, numbers: Sequence[int]
) -> tuple[ReceiptItem, ...]:
    items = []
    for answer in answers:
        if isinstance(answer, ExistingAnswer):
            iid, title = answer.iid, answer.title
        else:
            iid = numbers[answer.index]
            title = decided.new[answer.index].incoming.title
        items.append(ReceiptItem(iid=iid, title=title, action=answer.action))
    return tuple(items)
