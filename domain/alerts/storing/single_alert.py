"""Stores the most common delivery, one firing alert on Postgres, with a single statement.

If an open alert has the same fingerprint, the statement adds an event to it and updates its
reported fields. Otherwise, it takes the next number of the project and opens an alert. The
statement also inserts the delivery and the occurrence. If two requests open the same alert at the
same time, one of the statements stores nothing. Its delivery is then stored as a batch, and the
number that it took remains unused.

With `project_id + 0`, the planner can only use the indexes that begin with the fingerprint
(migration 0051).
"""

from collections.abc import Mapping

import orjson
from sqlalchemy import text

from domain.alerts.parsing.incoming_alert import IncomingAlert, ParsedBody
from domain.alerts.parsing.parse_warnings import collect_parse_warnings
from domain.alerts.storing.inbound_delivery import (
    InboundDelivery,
    build_alert_values,
    build_delivery_values,
)
from domain.alerts.storing.intake_result import IntakeItem, IntakeResult
from domain.alerts.storing.lifecycle import Action
from domain.alerts.storing.reported_fields import build_set_clause
from domain.core.database.statements import StatementConnection

#: Parameters for the fields that the sender provided, which are NULL for default values.
_REPORTED_PARAMETERS = {
    "severity": ":given_severity",
    "severity_reason": ":given_severity_reason",
    "title": ":given_title",
    "description": ":description",
    "service": ":service",
    "monitoring_tool": ":monitoring_tool",
    "hosts": ":given_hosts",
    "query": ":given_query",
}
_STORE_ALERT = text(
    f"""
WITH next_delivery AS (
  SELECT nextval('deliveries_id_seq') AS delivery_id
), joined AS (
  UPDATE alerts SET events = events + 1, last_event_at = :now,
    {
        build_set_clause(
            _REPORTED_PARAMETERS, delivery_id="next_delivery.delivery_id", item_index=":item_index"
        )
    }
  FROM next_delivery
  WHERE fingerprint = :fingerprint AND project_id + 0 = :project_id AND status <> 'resolved'
  RETURNING alerts.id, alerts.iid, alerts.title, false AS is_new,
    alerts.integration_id IS DISTINCT FROM CAST(:integration_id AS bigint) AS is_of_another
), number AS (
  SELECT nextval(('alert_iids_' || :project_id)::regclass)::int AS iid
  WHERE NOT EXISTS (SELECT FROM joined) AND NOT EXISTS (
    SELECT FROM (
      SELECT status, ended_at, recovery_received_at FROM alerts
      WHERE fingerprint = :fingerprint AND project_id + 0 = :project_id
      ORDER BY project_id DESC, id DESC LIMIT 1
    ) AS last
    WHERE last.status = 'resolved' AND :given_start < last.ended_at
      AND last.recovery_received_at > :recovered_after
      AND last.recovery_received_at < :recovered_before
  )
), opened AS (
  INSERT INTO alerts (project_id, iid, integration_id, delivery_id, item_index, fingerprint,
    monitor_id, status, severity, severity_reason, title, description, service, monitoring_tool,
    hosts, query, environment, events, started_at, last_event_at, created_at)
  SELECT :project_id, number.iid, :integration_id, next_delivery.delivery_id, :item_index,
    :fingerprint, :monitor_id, 'triggered', :severity, :severity_reason, :title, :description,
    :service, :monitoring_tool, :hosts, :query, :environment, 1, :started_at, :now, :now
  FROM next_delivery, number
  ON CONFLICT (project_id, fingerprint) WHERE fingerprint IS NOT NULL AND status <> 'resolved'
  DO NOTHING
  RETURNING id, iid, title, true AS is_new
), outcome AS (
  SELECT id, iid, title, is_new FROM joined
  UNION ALL
  SELECT id, iid, title, is_new FROM opened
), delivery AS (
  INSERT INTO deliveries (id, project_id, integration_id, format, mapping, is_test, received_at,
    status_code, sender, size, body, duration, skipped, opened, joined, resolved, remarks,
    truncated_alerts, dropped)
  SELECT next_delivery.delivery_id, :project_id, :integration_id, :format, CAST(:mapping AS json),
    :is_test, :now, 200, :sender, :size, :body, :duration, 0, CAST(outcome.is_new AS int),
    CAST(NOT outcome.is_new AS int), 0, CAST(:remarks AS json), :truncated_alerts, :dropped
  FROM next_delivery, outcome
), occurrence AS (
  INSERT INTO occurrences (alert_id, delivery_id, item_index, action)
  SELECT outcome.id, next_delivery.delivery_id, :item_index,
    CASE WHEN outcome.is_new THEN CAST(:opening AS smallint) ELSE CAST(:joining AS smallint) END
  FROM next_delivery, outcome
), reporter AS (
  INSERT INTO alert_reporters (alert_id, integration_id, created_at)
  SELECT id, :integration_id, :now FROM joined
  WHERE is_of_another AND CAST(:integration_id AS bigint) IS NOT NULL
  ON CONFLICT DO NOTHING
)
SELECT iid, title, is_new, delivery_id FROM outcome, next_delivery
"""  # noqa: S608 - constants of this module
)


def store_single_alert(
    parsed: ParsedBody, delivery: InboundDelivery, *, connection: StatementConnection
) -> IntakeResult | None:
    """Store the only alert of a body, which is firing and has a fingerprint.

    In two cases, return None without storing anything. Either the alert may be a late copy of a
    resolved alert, or another request has just opened the same alert. Both cases are rare, and
    handling them here would slow down every execution of the statement.
    """
    (alert,) = parsed.alerts
    values = build_alert_values(alert, delivery)
    parameters = {
        **values,
        **_build_reported_parameters(alert, values),
        **build_delivery_values(delivery),
        "now": delivery.received_at,
        "recovered_after": delivery.arrival.recovered_after,
        "recovered_before": delivery.arrival.recovered_before,
        "remarks": orjson.dumps(collect_parse_warnings(parsed)).decode(),
        "truncated_alerts": parsed.truncated_alerts,
        "dropped": parsed.dropped,
        "opening": Action.OPENED.rank,
        "joining": Action.JOINED.rank,
    }
    parameters["mapping"] = orjson.dumps(parameters["mapping"]).decode()
    rows = connection.execute_statement(_STORE_ALERT, parameters)
    if not rows:
        return None
    iid, title, is_new, delivery_id = rows[0]
    action = Action.OPENED if is_new else Action.JOINED
    items = (IntakeItem(iid=iid, title=title, action=action),)
    return IntakeResult(delivery_id=delivery_id, items=items, by_item=items)


def _build_reported_parameters(
    alert: IncomingAlert, values: Mapping[str, object]
) -> dict[str, object]:
    """Return the fields that the sender provided, with None instead of default values."""
    left_out = alert.left_out
    has_severity = "severity" not in left_out
    return {
        "given_severity": values["severity"] if has_severity else None,
        "given_severity_reason": values["severity_reason"] if has_severity else None,
        "given_title": None if "title" in left_out else alert.title,
        "given_hosts": values["hosts"] or None,
        "given_query": alert.query,
        "given_start": alert.reported_start,
    }
