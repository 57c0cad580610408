"""The commonest delivery, one firing alert on Postgres, in a single statement.

It counts an event on the open alert with this fingerprint, or else takes the next number and
opens one; the delivery is stored with it. When two first alerts arrive at once, the loser finds
the winner's row through ON CONFLICT and joins it; the number that it had taken stays unused.
"""

from collections.abc import Sequence

import orjson
from sqlalchemy import text

from domain.alerts.incoming import IncomingAlert
from domain.alerts.parcel import Parcel, alert_values
from domain.hot import HotConnection

_STORE = text(
    """
WITH joined AS (
  UPDATE alerts SET events = events + 1, last_event_at = :now
  WHERE project_id = :project_id AND fingerprint = :fingerprint AND status <> 'resolved'
  RETURNING iid, title, false AS is_new
), ticket AS (
  SELECT nextval(pg_get_serial_sequence('deliveries', 'id')) AS delivery_id
), counter AS (
  UPDATE alert_counters SET last_iid = last_iid + 1
  WHERE project_id = :project_id AND NOT EXISTS (SELECT FROM joined)
  RETURNING last_iid
), opened AS (
  INSERT INTO alerts (project_id, iid, integration_id, delivery_id, item_index, fingerprint,
    status, severity, title, description, service, monitoring_tool, hosts, environment, events,
    started_at, last_event_at, created_at)
  SELECT :project_id, counter.last_iid, :integration_id, ticket.delivery_id, :item_index,
    :fingerprint, 'triggered', :severity, :title, :description, :service, :monitoring_tool,
    :hosts, :environment, 1, :started_at, :now, :now
  FROM ticket, counter
  ON CONFLICT (project_id, fingerprint) WHERE fingerprint IS NOT NULL AND status <> 'resolved'
  DO UPDATE SET events = alerts.events + 1, last_event_at = excluded.last_event_at
  RETURNING iid, title, (xmax = 0) AS is_new
), outcome AS (
  SELECT iid, title, is_new FROM joined
  UNION ALL
  SELECT iid, title, is_new FROM opened
), delivery AS (
  INSERT INTO deliveries (id, project_id, integration_id, format, is_test, received_at,
    status_code, sender, size, body, opened, joined, resolved, remarks, truncated_alerts)
  SELECT ticket.delivery_id, :project_id, :integration_id, :format, :is_test, :now,
    200, :sender, :size, :body, CAST(outcome.is_new AS int), CAST(NOT outcome.is_new AS int),
    0, CAST(:remarks AS json), 0
  FROM ticket, outcome
)
SELECT iid, title, is_new FROM outcome
"""
)


def store(
    alert: IncomingAlert, parcel: Parcel, remarks: Sequence[str], *, hot: HotConnection
) -> tuple[int, str, bool]:
    """Store one firing alert that has a fingerprint; return its iid, title, and whether it is new.

    The title is the stored one: a joined alert keeps the title that it was opened with.
    """
    parameters = {
        **alert_values(alert, parcel),
        "format": parcel.format,
        "is_test": parcel.is_test,
        "now": parcel.received_at,
        "sender": parcel.sender,
        "size": len(parcel.body),
        "body": parcel.body,
        "remarks": orjson.dumps(list(remarks)).decode(),
    }
    row = hot.all(_STORE, parameters)[0]
    return row.iid, row.title, row.is_new
