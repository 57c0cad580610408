"""Stores a delivery on SQLite with a few statements in one transaction.

Transactions start with BEGIN IMMEDIATE, so there is no other writer. Therefore, the project is not
locked. Numbers for new alerts are taken from the project's alert counter.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Executable, bindparam, func, insert, select, text, update

from domain.alerts.parsing.incoming_alert import IncomingAlert, ParsedBody
from domain.alerts.storing.inbound_delivery import (
    InboundDelivery,
    build_alert_values,
    build_delivery_values,
)
from domain.alerts.storing.intake_result import build_outcome_values
from domain.alerts.storing.lifecycle import (
    RESOLVED,
    Action,
    IntakePlan,
    NewAlert,
    StoredAlert,
    StoredAlertOutcome,
    can_match_resolved_alert,
)
from domain.alerts.storing.reported_fields import REPORTED_COLUMNS, build_set_clause
from domain.core.database.statements import StatementConnection, build_columns
from models import Alert, AlertCounter, AlertReporter, Delivery, Occurrence

#: Maximum number of fingerprints in a query, since SQLite limits the number of parameters.
_MAX_FINGERPRINTS_PER_QUERY = 5000


#: Condition on the project. With `+ 0`, the planner can only use the indexes that begin with the
#: fingerprint (migration 0051).
_IS_IN_PROJECT = Alert.project_id + 0 == bindparam("project_id")


class ExistingAlertRow(NamedTuple):
    """An alert, as selected by `EXISTING_ALERTS_QUERY`."""

    id: int
    iid: int
    title: str
    fingerprint: bytes
    integration_id: int | None
    status: str
    started_at: datetime
    #: End of the alert, or the time of its last event if it is open.
    ended_at: datetime
    recovery_received_at: datetime | None


EXISTING_ALERTS_QUERY = select(
    *build_columns(
        ExistingAlertRow._fields,
        {"": Alert},
        ended_at=func.coalesce(Alert.ended_at, Alert.last_event_at),
    )
)

_OPEN_ALERTS_QUERY = EXISTING_ALERTS_QUERY.where(
    _IS_IN_PROJECT,
    Alert.fingerprint.in_(bindparam("fingerprints", expanding=True)),
    Alert.status != RESOLVED,
)

_LAST_RESOLVED_ALERTS_QUERY = EXISTING_ALERTS_QUERY.where(
    Alert.id.in_(
        select(func.max(Alert.id))
        .where(
            _IS_IN_PROJECT,
            Alert.fingerprint.in_(bindparam("fingerprints", expanding=True)),
        )
        .group_by(Alert.fingerprint)
    )
)


def find_existing_alerts(
    alerts: Sequence[IncomingAlert], project_id: int, *, connection: StatementConnection
) -> dict[bytes, StoredAlert]:
    """Return the open alert for each fingerprint, or the last resolved alert if it may match."""
    wanted = {alert.fingerprint for alert in alerts if alert.fingerprint is not None}
    found = _look_up_alerts(_OPEN_ALERTS_QUERY, wanted, project_id, connection=connection)
    unknown = wanted - found.keys()
    over = {
        each.fingerprint
        for each in alerts
        if each.fingerprint in unknown and can_match_resolved_alert(each)
    }
    return found | _look_up_alerts(
        _LAST_RESOLVED_ALERTS_QUERY, over, project_id, connection=connection
    )


def _look_up_alerts(
    statement: Executable,
    fingerprints: set[bytes],
    project_id: int,
    *,
    connection: StatementConnection,
) -> dict[bytes, StoredAlert]:
    wanted, found = list(fingerprints), {}
    for start in range(0, len(wanted), _MAX_FINGERPRINTS_PER_QUERY):
        parameters = {
            "project_id": project_id,
            "fingerprints": wanted[start : start + _MAX_FINGERPRINTS_PER_QUERY],
        }
        for row in connection.execute_statement(statement, parameters):
            alert = ExistingAlertRow._make(row)
            found[alert.fingerprint] = StoredAlert(
                alert.id,
                alert.iid,
                alert.title,
                started_at=alert.started_at,
                ended_at=alert.ended_at if alert.status == RESOLVED else None,
                recovery_received_at=alert.recovery_received_at,
                integration_id=alert.integration_id,
            )
    return found


def store_plan(
    decided: IntakePlan,
    parsed: ParsedBody,
    delivery: InboundDelivery,
    *,
    connection: StatementConnection,
) -> tuple[int, Sequence[int]]:
    """Write the plan, and return the ID of the delivery and the numbers (iid) of new alerts."""
    values = {**build_delivery_values(delivery), **build_outcome_values(decided, parsed)}
    delivery_id: int = connection.execute_statement(_INSERT_DELIVERY, values)[0][0]
    _update_existing_alerts(decided, delivery, delivery_id, connection=connection)
    iids: Sequence[int] = ()
    new_ids: Sequence[int] = ()
    if decided.new:
        iids = _reserve_iids(len(decided.new), delivery.project_id, connection=connection)
        new_ids = _insert_new_alerts(
            decided.new, delivery, (delivery_id, iids), connection=connection
        )
    occurrences = [
        {
            "alert_id": (
                outcome.alert_id
                if isinstance(outcome, StoredAlertOutcome)
                else new_ids[outcome.index]
            ),
            "delivery_id": delivery_id,
            "item_index": alert.item_index,
            "action": outcome.action.rank,
            "is_late": outcome.action is Action.LATE,
        }
        for alert, outcome in zip(parsed.alerts, decided.outcomes, strict=True)
    ]
    if occurrences:
        connection.execute_statement(_INSERT_OCCURRENCES, occurrences)
    if reporters := _build_reporter_rows(decided, delivery):
        connection.execute_statement(_INSERT_REPORTERS, reporters)
    return delivery_id, iids


def _build_reporter_rows(decided: IntakePlan, delivery: InboundDelivery) -> list[dict[str, object]]:
    """Return rows that add the integration as a reporter of other integrations' alerts."""
    if delivery.integration_id is None:
        return []
    others = {
        outcome.alert_id
        for outcome in decided.outcomes
        if isinstance(outcome, StoredAlertOutcome)
        and outcome.action is not Action.UNCHANGED
        and outcome.integration_id != delivery.integration_id
    }
    return [
        {
            "alert_id": alert_id,
            "integration_id": delivery.integration_id,
            "created_at": delivery.received_at,
        }
        for alert_id in sorted(others)
    ]


_INSERT_REPORTERS = insert(AlertReporter).prefix_with("OR IGNORE")

_INSERT_DELIVERY = insert(Delivery).returning(Delivery.id)

_INSERT_OCCURRENCES = insert(Occurrence)

_RESOLVE_ALERT = (
    update(Alert)
    .where(Alert.id == bindparam("alert_id"))
    .values(
        status=RESOLVED,
        ended_at=bindparam("ended"),
        last_event_at=bindparam("now"),
        recovery_received_at=bindparam("now"),
    )
)

_ADD_EVENTS = (
    update(Alert)
    .where(Alert.id == bindparam("alert_id"))
    .values(events=Alert.events + bindparam("more"), last_event_at=bindparam("now"))
)

_SET_REPORTED_FIELDS = text(
    f"""
    UPDATE alerts SET
    {
        build_set_clause(
            {name: f":{name}" for name in REPORTED_COLUMNS},
            delivery_id=":delivery_id",
            item_index=":item_index",
        )
    }
    WHERE id = :alert_id
    """  # noqa: S608 - constants of this module
)


def _update_existing_alerts(
    decided: IntakePlan,
    delivery: InboundDelivery,
    delivery_id: int,
    *,
    connection: StatementConnection,
) -> None:
    now = delivery.received_at
    bumps = [
        {"alert_id": alert_id, "more": more, "now": now}
        for alert_id, more in sorted(decided.added_events.items())
    ]
    resolutions = [
        {"alert_id": alert_id, "ended": ended_at, "now": now}
        for alert_id, ended_at in sorted(decided.resolutions.items())
    ]
    reported = [
        {
            **report._asdict(),
            "alert_id": alert_id,
            "delivery_id": delivery_id,
            "item_index": item_index,
        }
        for alert_id, (report, item_index) in decided.reported.items()
    ]
    # Update events first, since the trigger that records changed fields reads last_event_at.
    for statement, rows in (
        (_ADD_EVENTS, bumps),
        (_SET_REPORTED_FIELDS, reported),
        (_RESOLVE_ALERT, resolutions),
    ):
        if rows:
            connection.execute_statement(statement, rows)


_ADVANCE_COUNTER = (
    update(AlertCounter)
    .where(AlertCounter.project_id == bindparam("of_project"))
    .values(last_iid=AlertCounter.last_iid + bindparam("more"))
    .returning(AlertCounter.last_iid)
)


def _reserve_iids(count: int, project_id: int, *, connection: StatementConnection) -> Sequence[int]:
    more = {"of_project": project_id, "more": count}
    last_iid: int = connection.execute_statement(_ADVANCE_COUNTER, more)[0][0]
    return range(last_iid - count + 1, last_iid + 1)


_INSERT_ALERTS = insert(Alert).returning(Alert.iid, Alert.id)


def _insert_new_alerts(
    new: Sequence[NewAlert],
    delivery: InboundDelivery,
    ids_to_use: tuple[int, Sequence[int]],
    *,
    connection: StatementConnection,
) -> Sequence[int]:
    """Insert the new alerts in a delivery, and return their IDs in order.

    `ids_to_use` contains the ID of the delivery and the numbers (iid) of the alerts.
    """
    delivery_id, iids = ids_to_use
    rows = [
        {
            **build_alert_values(each.incoming, delivery),
            "iid": iid,
            "delivery_id": delivery_id,
            "events": each.events,
            "status": each.status,
            "ended_at": each.resolved_at,
            "recovery_received_at": delivery.received_at if each.resolved_at else None,
        }
        for iid, each in zip(iids, new, strict=True)
    ]
    ids: dict[int, int] = dict(map(tuple, connection.execute_statement(_INSERT_ALERTS, rows)))
    return [ids[iid] for iid in iids]
