"""Stores a delivery with any number of items on Postgres, with one query and one write statement.

Rows are passed as JSON, since serializing and parsing JSON is faster than writing arrays with
psycopg.

A statement is planned once per connection, possibly while the tables are almost empty. The same
plan is still used when the tables are large. Therefore, a full table scan must not seem cheaper to
the planner for any part of a statement. Alerts are looked up one fingerprint at a time. Rows to
update are selected by comparing a text column with a constant, for which the planner expects few
rows.
"""

from collections.abc import Iterator, Sequence

import orjson
from sqlalchemy import text

from domain.alerts.parsing.incoming_alert import IncomingAlert, ParsedBody
from domain.alerts.storing.inbound_delivery import InboundDelivery, build_delivery_values
from domain.alerts.storing.intake_result import build_outcome_values
from domain.alerts.storing.lifecycle import (
    RESOLVED,
    Action,
    IntakePlan,
    ItemOutcome,
    NewAlert,
    StoredAlert,
    StoredAlertOutcome,
    can_match_resolved_alert,
)
from domain.alerts.storing.reported_fields import REPORTED_COLUMNS, build_set_clause
from domain.core.database.statements import StatementConnection

_REPORTED_EXPRESSIONS = {name: f"touched.{name}" for name in REPORTED_COLUMNS}

_LOCK_COUNTER = text(
    "SELECT last_iid FROM alert_counters WHERE project_id = :project_id FOR UPDATE"
)

#: Query for open alerts and, for items that can belong to a resolved alert, the last resolved
#: alert. With `project_id + 0` and the ORDER BY, the planner can only use the indexes that begin
#: with the fingerprint (migration 0051).
_FIND_EXISTING_ALERTS = text(
    """
SELECT met.id, met.iid, met.title, wanted.fingerprint, met.started_at,
  CAST(NULL AS timestamptz) AS ended_at, CAST(NULL AS timestamptz) AS recovery_received_at
FROM unnest(CAST(:fingerprints AS bytea[])) AS wanted (fingerprint)
CROSS JOIN LATERAL (
  SELECT id, iid, title, started_at FROM alerts
  WHERE fingerprint = wanted.fingerprint AND project_id + 0 = :project_id AND status <> 'resolved'
  LIMIT 1
) AS met
UNION ALL
SELECT met.id, met.iid, met.title, wanted.fingerprint, met.started_at, met.ended_at,
  met.recovery_received_at
FROM unnest(CAST(:looking_back AS bytea[])) AS wanted (fingerprint)
CROSS JOIN LATERAL (
  SELECT id, iid, title, status, started_at, coalesce(ended_at, last_event_at) AS ended_at,
    recovery_received_at
  FROM alerts
  WHERE fingerprint = wanted.fingerprint AND project_id + 0 = :project_id
  ORDER BY project_id DESC, id DESC LIMIT 1
) AS met
WHERE met.status = 'resolved'
"""
)

#: Statement that writes a plan. `count(*)` of the updated rows makes the updates happen before the
#: inserts. A body may resolve an alert and open the next alert with the same fingerprint.
_STORE_PLAN = text(
    f"""
WITH touched AS MATERIALIZED (
  SELECT * FROM json_to_recordset(CAST(convert_from(:alerts, 'UTF8') AS json)) AS alert (
    row_state text, ordinal int, id bigint, item_index int, fingerprint text, status text,
    severity smallint, severity_reason text, title text, description text, service text,
    monitoring_tool text, hosts text, query text, environment text, events int,
    started_at timestamptz, ended_at timestamptz)
), delivery AS (
  INSERT INTO deliveries (project_id, integration_id, format, mapping, is_test, received_at,
    status_code, sender, size, body, duration, skipped, opened, joined, resolved, remarks,
    truncated_alerts, dropped)
  VALUES (:project_id, :integration_id, :format, CAST(:mapping AS json), :is_test, :received_at,
    :status_code, :sender, :size, :body, :duration, 0, :opened, :joined, :resolved,
    CAST(:remarks AS json), :truncated_alerts, :dropped)
  RETURNING id
), changed AS (
  UPDATE alerts SET events = alerts.events + touched.events, last_event_at = :received_at,
    status = coalesce(touched.status, alerts.status),
    ended_at = coalesce(touched.ended_at, alerts.ended_at),
    recovery_received_at = CASE WHEN touched.status = 'resolved' THEN :received_at
      ELSE alerts.recovery_received_at END,
    {
        build_set_clause(
            _REPORTED_EXPRESSIONS, delivery_id="delivery.id", item_index="touched.item_index"
        )
    }
  FROM touched, delivery WHERE touched.row_state = 'stored' AND alerts.id = touched.id
  RETURNING alerts.id,
    alerts.integration_id IS DISTINCT FROM CAST(:integration_id AS bigint) AS is_of_another
), numbered AS (
  SELECT ordinal, nextval('alerts_id_seq') AS id,
    nextval(('alert_iids_' || :project_id)::regclass)::int AS iid
  FROM touched WHERE row_state = 'new' ORDER BY ordinal
), taken AS MATERIALIZED (
  SELECT array_agg(id ORDER BY ordinal) AS ids, array_agg(iid ORDER BY ordinal) AS iids
  FROM numbered
), opened AS (
  INSERT INTO alerts (id, project_id, iid, integration_id, delivery_id, item_index, fingerprint,
    monitor_id, status, severity, severity_reason, title, description, service, monitoring_tool,
    hosts, query, environment, events, started_at, ended_at, recovery_received_at, last_event_at,
    created_at)
  SELECT taken.ids[ordinal], :project_id, taken.iids[ordinal], :integration_id, delivery.id,
    item_index, decode(fingerprint, 'hex'), CAST(:monitor_id AS bigint), status, severity,
    severity_reason, title, description, service, monitoring_tool, hosts, query, environment,
    events, started_at, ended_at,
    CASE WHEN status = 'resolved' THEN :received_at END, :received_at, :received_at
  FROM touched, taken, delivery, (SELECT count(*) FROM changed) AS before
  WHERE row_state = 'new'
), occurrence AS (
  INSERT INTO occurrences (alert_id, delivery_id, item_index, action, is_late)
  SELECT coalesce(item.alert_id, taken.ids[item.ordinal]), delivery.id, item.item_index,
    item.action, item.is_late
  FROM json_to_recordset(CAST(convert_from(:items, 'UTF8') AS json)) AS item (
    item_index int, action smallint, is_late boolean, alert_id bigint, ordinal int),
    taken, delivery
), reporter AS (
  INSERT INTO alert_reporters (alert_id, integration_id, created_at)
  SELECT id, :integration_id, :received_at FROM changed
  WHERE is_of_another AND CAST(:integration_id AS bigint) IS NOT NULL
  ON CONFLICT DO NOTHING
)
SELECT delivery.id AS delivery_id, taken.iids FROM delivery, taken
"""  # noqa: S608 - constants of this module
)


def lock_alert_counter(project_id: int, *, connection: StatementConnection) -> None:
    """Lock the project's alert counter until the end of the transaction.

    Batches and manual status changes take this lock first.
    """
    connection.execute_statement(_LOCK_COUNTER, {"project_id": project_id})


def find_existing_alerts(
    alerts: Sequence[IncomingAlert], project_id: int, *, connection: StatementConnection
) -> dict[bytes, StoredAlert]:
    """Return the open alert for each fingerprint, or the last resolved alert if it may match."""
    fingerprints = {alert.fingerprint for alert in alerts}
    looking_back = {alert.fingerprint for alert in alerts if can_match_resolved_alert(alert)}
    parameters = {
        "project_id": project_id,
        "fingerprints": list(fingerprints - {None}),
        "looking_back": list(looking_back - {None}),
    }
    found: dict[bytes, StoredAlert] = {}
    for alert_id, iid, title, fingerprint, *span in connection.execute_statement(
        _FIND_EXISTING_ALERTS, parameters
    ):
        is_open = span[1] is None
        if is_open or fingerprint not in found:
            found[fingerprint] = StoredAlert(alert_id, iid, title, *span)
    return found


def store_plan(
    decided: IntakePlan,
    parsed: ParsedBody,
    delivery: InboundDelivery,
    *,
    connection: StatementConnection,
) -> tuple[int, Sequence[int]]:
    """Write the plan, and return the ID of the delivery and the numbers (iid) of new alerts."""
    values = {
        **build_delivery_values(delivery),
        **build_outcome_values(decided, parsed),
        "monitor_id": delivery.monitor_id,
        "alerts": orjson.dumps(list(_build_alert_rows(decided))),
        "items": orjson.dumps(list(_build_occurrence_rows(parsed.alerts, decided.outcomes))),
    }
    for name in ("remarks", "mapping"):
        values[name] = orjson.dumps(values[name]).decode()
    delivery_id, iids = connection.execute_statement(_STORE_PLAN, values)[0]
    return delivery_id, iids or ()


def _build_alert_rows(decided: IntakePlan) -> Iterator[dict[str, object]]:
    for ordinal, new in enumerate(decided.new, 1):
        yield {"row_state": "new", "ordinal": ordinal, **_build_new_alert_values(new)}
    for alert_id in decided.added_events.keys() | decided.resolutions.keys():
        ended_at = decided.resolutions.get(alert_id)
        reported, item_index = decided.reported.get(alert_id, (None, 0))
        yield {
            **(reported._asdict() if reported else {}),
            "item_index": item_index,
            "row_state": "stored",
            "id": alert_id,
            "events": decided.added_events.get(alert_id, 0),
            "status": None if ended_at is None else RESOLVED,
            "ended_at": ended_at,
        }


def _build_new_alert_values(new: NewAlert) -> dict[str, object]:
    alert = new.incoming
    return {
        "item_index": alert.item_index,
        "fingerprint": alert.fingerprint and alert.fingerprint.hex(),
        "status": new.status,
        "severity": alert.severity.rank,
        "severity_reason": alert.severity_reason,
        "title": alert.title,
        "description": alert.description,
        "service": alert.service,
        "monitoring_tool": alert.monitoring_tool,
        "hosts": "\n".join(alert.hosts),
        "query": alert.query or "",
        "environment": alert.environment,
        "events": new.events,
        "started_at": alert.started_at,
        "ended_at": new.resolved_at,
    }


def _build_occurrence_rows(
    alerts: Sequence[IncomingAlert], outcomes: Sequence[ItemOutcome]
) -> Iterator[dict[str, int]]:
    for alert, outcome in zip(alerts, outcomes, strict=True):
        item = {
            "item_index": alert.item_index,
            "action": outcome.action.rank,
            "is_late": outcome.action is Action.LATE,
        }
        if isinstance(outcome, StoredAlertOutcome):
            yield {**item, "alert_id": outcome.alert_id}
        else:
            yield {**item, "ordinal": outcome.index + 1}
