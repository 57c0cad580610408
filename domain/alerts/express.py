"""The commonest delivery, one firing alert on Postgres, in a single statement.

It counts an event on the open alert with this fingerprint, or else takes the next number and
opens one; the delivery and the occurrence are stored with it. When two first alerts arrive at
once, the loser finds the winner's row through ON CONFLICT and joins it; the number that it had
taken stays unused. Adding nothing to the project keeps the planner from every index but that of
fingerprints (migration 0007).
"""

import orjson
from sqlalchemy import text

from domain.alerts.incoming import IncomingAlert
from domain.alerts.lifecycle import Action
from domain.alerts.parcel import Parcel, alert_values, delivery_values
from domain.alerts.receipts import Receipt, ReceiptItem
from domain.hot import HotConnection

_STORE = text(
    """
WITH joined AS (
  UPDATE alerts SET events = events + 1, last_event_at = :now
  WHERE fingerprint = :fingerprint AND project_id + 0 = :project_id AND status <> 'resolved'
  RETURNING id, iid, title, false AS is_new
), ticket AS (
  SELECT nextval('deliveries_id_seq') AS delivery_id
), number AS (
  SELECT nextval(('alert_iids_' || :project_id)::regclass)::int AS iid
  WHERE NOT EXISTS (SELECT FROM joined)
), opened AS (
  INSERT INTO alerts (project_id, iid, integration_id, delivery_id, item_index, fingerprint,
    status, severity, title, description, service, monitoring_tool, hosts, environment, events,
    started_at, last_event_at, created_at)
  SELECT :project_id, number.iid, :integration_id, ticket.delivery_id, :item_index,
    :fingerprint, 'triggered', :severity, :title, :description, :service, :monitoring_tool,
    :hosts, :environment, 1, :started_at, :now, :now
  FROM ticket, number
  ON CONFLICT (project_id, fingerprint) WHERE fingerprint IS NOT NULL AND status <> 'resolved'
  DO UPDATE SET events = alerts.events + 1, last_event_at = excluded.last_event_at
  RETURNING id, iid, title, (xmax = 0) AS is_new
), outcome AS (
  SELECT id, iid, title, is_new FROM joined
  UNION ALL
  SELECT id, iid, title, is_new FROM opened
), delivery AS (
  INSERT INTO deliveries (id, project_id, integration_id, format, is_test, received_at,
    status_code, sender, size, body, duration, skipped, opened, joined, resolved, remarks,
    truncated_alerts)
  SELECT ticket.delivery_id, :project_id, :integration_id, :format, :is_test, :now,
    200, :sender, :size, :body, :duration, 0, CAST(outcome.is_new AS int),
    CAST(NOT outcome.is_new AS int), 0, CAST(:remarks AS json), 0
  FROM ticket, outcome
), occurrence AS (
  INSERT INTO occurrences (alert_id, delivery_id, item_index, action)
  SELECT outcome.id, ticket.delivery_id, :item_index,
    CASE WHEN outcome.is_new THEN CAST(:opening AS smallint) ELSE CAST(:joining AS smallint) END
  FROM ticket, outcome
)
SELECT iid, title, is_new, delivery_id FROM outcome, ticket
"""
)


def store(
    alert: IncomingAlert, parcel: Parcel, remarks: list[str], *, hot: HotConnection
) -> Receipt:
    """Store one firing alert that has a fingerprint; a joined one keeps the title it has."""
    parameters = {
        **alert_values(alert, parcel),
        **delivery_values(parcel),
        "now": parcel.received_at,
        "remarks": orjson.dumps(remarks).decode(),
        "opening": Action.OPENED.rank,
        "joining": Action.JOINED.rank,
    }
    iid, title, is_new, delivery_id = hot.all(_STORE, parameters)[0]
    action = Action.OPENED if is_new else Action.JOINED
    items = (ReceiptItem(iid=iid, title=title, action=action),)
    return Receipt(delivery_id=delivery_id, items=items, by_item=items)
