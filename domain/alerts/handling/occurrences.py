"""Lists the reports about an alert: the delivery items that opened or changed the alert."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select, tuple_
from sqlalchemy.orm import Session

from domain.alerts.handling.types import AlertOccurrence
from domain.alerts.storing.lifecycle import Action
from domain.core.database.bulk_statements import fetch_rows_by_key
from domain.core.database.pagination import KeysetPage, parse_id
from domain.core.errors import QueryError
from domain.core.types.base import get_column_values
from models import Alert, Delivery, Integration, Occurrence

_ACTIONS_BY_RANK = tuple(Action)
_AFFECTED_ALERTS = select(
    *(Occurrence.delivery_id, Occurrence.item_index, Occurrence.action, Occurrence.is_late),
    *(Alert.iid, Alert.title),
).join(Alert, Alert.id == Occurrence.alert_id)
_CHANGING_ACTION_RANKS = tuple(
    each.rank for each in (Action.OPENED, Action.JOINED, Action.RESOLVED)
)
#: Maximum number of alerts that are listed for one delivery. A webhook may contain thousands of
#: alerts.
MAX_AFFECTED_ALERTS = 200
#: ID of a delivery, and index of an item in the delivery.
OccurrencePosition = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class AffectedAlert:
    """An alert that an item of a delivery opened or changed."""

    iid: int
    #: Current title of the alert.
    title: str
    action: Action
    #: Position of the item in the delivery, starting from 1.
    item: int


def list_affected_alerts(delivery_id: int, *, session: Session) -> tuple[AffectedAlert, ...]:
    """Return up to MAX_AFFECTED_ALERTS alerts that a delivery opened or changed."""
    # The rows are sorted in Python, because Postgres without statistics would scan the whole table
    # to sort them.
    statement = _AFFECTED_ALERTS.where(Occurrence.delivery_id == delivery_id).limit(
        MAX_AFFECTED_ALERTS
    )
    found = (_build_affected_alert(row) for row in session.execute(statement))
    return tuple(sorted(found, key=lambda each: each.item))


def find_single_affected_alerts(
    delivery_ids: Collection[int], *, session: Session
) -> Mapping[int, AffectedAlert]:
    """Return the alert that each delivery changed, by delivery ID.

    The caller must pass only deliveries that opened, updated or resolved at most one alert.
    """
    changed = _AFFECTED_ALERTS.where(Occurrence.action.in_(_CHANGING_ACTION_RANKS))
    rows = fetch_rows_by_key(changed, Occurrence.delivery_id, delivery_ids, session=session)
    return {row.delivery_id: _build_affected_alert(row) for row in rows}


def _build_affected_alert(row: Row[*tuple[Any, ...]]) -> AffectedAlert:
    return AffectedAlert(
        iid=row.iid, title=row.title, action=_get_action(row), item=row.item_index + 1
    )


def _get_action(occurrence: Occurrence | Row[*tuple[Any, ...]]) -> Action:
    return Action.LATE if occurrence.is_late else _ACTIONS_BY_RANK[occurrence.action]


def parse_occurrence_position(text: str | None) -> OccurrencePosition | None:
    """Return the position in a cursor, or None if the cursor is empty.

    Raise QueryError if the cursor is not valid.
    """
    if not text:
        return None
    first, _, second = text.partition("_")
    numbers = parse_id(first), parse_id(second)
    if numbers[0] is None or numbers[1] is None:
        message = "This page of the list does not exist. Go to the first page."
        raise QueryError(message, field="cursor")
    return numbers[0], numbers[1]


def list_occurrences(
    alert_id: int,
    following: OccurrencePosition | None,
    *,
    size: int,
    is_oldest_first: bool = False,
    session: Session,
) -> KeysetPage[AlertOccurrence]:
    """Return a page of an alert's reports, newest first unless `is_oldest_first` is set."""
    position = (Occurrence.delivery_id, Occurrence.item_index)
    statement = (
        select(
            Occurrence,
            Delivery.received_at,
            Delivery.sender,
            Delivery.is_test,
            Delivery.integration_id,
            Integration.name.label("integration_name"),
        )
        .join(Delivery, Delivery.id == Occurrence.delivery_id)
        .outerjoin(Integration, Integration.id == Delivery.integration_id)
        .where(Occurrence.alert_id == alert_id)
        .order_by(*(each.asc() if is_oldest_first else each.desc() for each in position))
        .limit(size + 1)
    )
    if following is not None:
        key = tuple_(*position)
        statement = statement.where(key > following if is_oldest_first else key < following)
    rows = session.execute(statement).all()
    last = rows[size - 1][0] if len(rows) > size else None
    return KeysetPage(
        items=tuple(
            AlertOccurrence(
                **get_column_values(row, AlertOccurrence),
                action=_get_action(row[0]),
                item=row[0].item_index + 1,
                delivery_id=row[0].delivery_id,
            )
            for row in rows[:size]
        ),
        next_before=f"{last.delivery_id}_{last.item_index}" if last else None,
    )
