"""Stores what a delivery said: all of it in one transaction, or nothing.

There are two ways. One firing alert on Postgres takes a single statement (`express`), unless it may
be a late copy of what is over, or has just been opened by another one. Everything else waits for
its turn, looks at what is there, lets `lifecycle.plan` decide, and writes: `bulk` on Postgres,
`steps` on SQLite. A turn is the lock of the project's counter. It comes first and is the same for
all, so two webhooks with the same items in opposite order wait for each other and never deadlock.
Should a single alert open meanwhile what a webhook wants to open, the index of open fingerprints
refuses the webhook, which then looks again.
"""

from collections.abc import Sequence

from domain.alerts.reading.incoming import IncomingAlert, ParsedBody, State
from domain.alerts.storing import postgres_batch as bulk
from domain.alerts.storing import single_alert as express
from domain.alerts.storing import sqlite_batch as steps
from domain.alerts.storing.inbound_delivery import Parcel
from domain.alerts.storing.intake_result import Receipt, receipt_of
from domain.alerts.storing.lifecycle import Answer, plan
from domain.database.statements import HotConnection


def receive(parsed: ParsedBody, parcel: Parcel, *, hot: HotConnection) -> Receipt:
    """Store the alerts of a body and return what became of each."""
    if hot.dialect_name == "postgresql" and _is_express(parsed):
        receipt = express.store(parsed, parcel, hot=hot)
        if receipt is not None:
            return receipt
    return hot.transact(lambda: _store(parsed, parcel, hot=hot))


def foresee(
    alerts: Sequence[IncomingAlert], project_id: int, *, hot: HotConnection
) -> tuple[Answer, ...]:
    """Return what would become of each item if it came now, and change nothing."""
    existing = bulk.existing if hot.dialect_name == "postgresql" else steps.existing
    return plan(alerts, existing(alerts, project_id, hot=hot)).answers


def _is_express(parsed: ParsedBody) -> bool:
    return (
        len(parsed.alerts) == 1
        and not parsed.refused
        and parsed.alerts[0].state is State.FIRING
        and parsed.alerts[0].fingerprint is not None
    )


def _store(parsed: ParsedBody, parcel: Parcel, *, hot: HotConnection) -> Receipt:
    way = bulk if hot.dialect_name == "postgresql" else steps
    way.take_turn(parcel.project_id, hot=hot)
    decided = plan(parsed.alerts, way.existing(parsed.alerts, parcel.project_id, hot=hot))
    delivery_id, numbers = way.store(decided, parsed, parcel, hot=hot)
    return receipt_of(decided, delivery_id, numbers)
