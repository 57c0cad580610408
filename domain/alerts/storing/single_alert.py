"""The commonest delivery, one firing alert on Postgres, in a single statement.

It counts an event on the open alert with this fingerprint and shows its words, or else takes the
next number and opens one; the delivery and the occurrence are stored with it. When two first alerts
arrive at once, the loser stores nothing and has to take another way; the number that it had taken
stays unused. Adding nothing to the project keeps the planner from every index but those that begin
with the fingerprint (migration 0007).
"""

from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import text

from domain.alerts.reading.incoming import IncomingAlert, ParsedBody
from domain.alerts.reading.parse_warnings import remarks_of
from domain.alerts.storing.inbound_delivery import Parcel, alert_values, delivery_values
from domain.alerts.storing.intake_result import Receipt, ReceiptItem
from domain.alerts.storing.lifecycle import Action
from domain.alerts.storing.words import assignments
from domain.database.statements import HotConnection

#: Parameters: of those that may stand in for what was left out, there is one without.
_GIVEN = {
    "severity": ":given_severity",
    "severity_reason": ":given_severity_reason",
    "title": ":given_title",
    "description": ":description",
    "service": ":service",
    "monitoring_tool": ":monitoring_tool",
    "hosts": ":given_hosts",
    "query": ":given_query",
}
_STORE = text(
    f"""
WITH ticket AS (
  SELECT nextval('deliveries_id_seq') AS delivery_id
), joined AS (
  UPDATE alerts SET events = events + 1, last_event_at = :now,
    {assignments(_GIVEN, delivery_id="ticket.delivery_id", item_index=":item_index")}
  FROM ticket
  WHERE fingerprint = :fingerprint AND project_id + 0 = :project_id AND status <> 'resolved'
  RETURNING alerts.id, alerts.iid, alerts.title, false AS is_new
), number AS (
  SELECT nextval(('alert_iids_' || :project_id)::regclass)::int AS iid
  WHERE NOT EXISTS (SELECT FROM joined) AND NOT EXISTS (
    SELECT FROM (
      SELECT status, started_at, ended_at FROM alerts
      WHERE fingerprint = :fingerprint AND project_id + 0 = :project_id
      ORDER BY project_id DESC, id DESC LIMIT 1
    ) AS last
    WHERE last.status = 'resolved'
      AND (:given_start < last.ended_at OR :given_start = last.started_at)
  )
), opened AS (
  INSERT INTO alerts (project_id, iid, integration_id, delivery_id, item_index, fingerprint,
    status, severity, severity_reason, title, description, service, monitoring_tool, hosts, query,
    environment, events, started_at, last_event_at, created_at)
  SELECT :project_id, number.iid, :integration_id, ticket.delivery_id, :item_index,
    :fingerprint, 'triggered', :severity, :severity_reason, :title, :description, :service,
    :monitoring_tool, :hosts, :query, :environment, 1, :started_at, :now, :now
  FROM ticket, number
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
    truncated_alerts)
  SELECT ticket.delivery_id, :project_id, :integration_id, :format, CAST(:mapping AS json),
    :is_test, :now, 200, :sender, :size, :body, :duration, 0, CAST(outcome.is_new AS int),
    CAST(NOT outcome.is_new AS int), 0, CAST(:remarks AS json), :truncated_alerts
  FROM ticket, outcome
), occurrence AS (
  INSERT INTO occurrences (alert_id, delivery_id, item_index, action)
  SELECT outcome.id, ticket.delivery_id, :item_index,
    CASE WHEN outcome.is_new THEN CAST(:opening AS smallint) ELSE CAST(:joining AS smallint) END
  FROM ticket, outcome
)
SELECT iid, title, is_new, delivery_id FROM outcome, ticket
"""  # noqa: S608 - constants of this module
)


def store(parsed: ParsedBody, parcel: Parcel, *, hot: HotConnection) -> Receipt | None:
    """Store the one firing alert of a body, which has a fingerprint.

    Return None, and leave it to another way, if it may be a late copy of what is over, or if
    another one opened it at the same moment. Both are rare, and whatever else a statement may do
    costs all of its executions.
    """
    (alert,) = parsed.alerts
    values = alert_values(alert, parcel)
    parameters = {
        **values,
        **_given(alert, values),
        **delivery_values(parcel),
        "now": parcel.received_at,
        "remarks": orjson.dumps(remarks_of(parsed)).decode(),
        "truncated_alerts": parsed.truncated_alerts,
        "opening": Action.OPENED.rank,
        "joining": Action.JOINED.rank,
    }
    parameters["mapping"] = orjson.dumps(parameters["mapping"]).decode()
    rows = hot.all(_STORE, parameters)
    if not rows:
        return None
    iid, title, is_new, delivery_id = rows[0]
    action = Action.OPENED if is_new else Action.JOINED
    items = (ReceiptItem(iid=iid, title=title, action=action),)
    return Receipt(delivery_id=delivery_id, items=items, by_item=items)


def _given(alert: IncomingAlert, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the sender itself said, of what has a value all the same."""
    left_out = alert.left_out
    has_severity = "severity" not in left_out
    return {
        "given_severity": values["severity"] if has_severity else None,
        "given_severity_reason": values["severity_reason"] if has_severity else None,
        "given_title": None if "title" in left_out else alert.title,
        "given_hosts": values["hosts"] or None,
        "given_query": alert.query,
        "given_start": alert.given_start,
    }
