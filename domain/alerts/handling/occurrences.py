"""Lists the reports of an alert: each item of a delivery that opened or changed it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Select, and_, select, true, tuple_
from sqlalchemy.orm import Session, aliased

from domain.alerts.handling.types import AlertOccurrence
from domain.alerts.storing.lifecycle import Action
from domain.database.paging import Page, parse_id
from domain.errors import QueryError
from domain.types.base import columns_of
from models import Alert, Delivery, Occurrence

_ACTIONS = tuple(Action)
_CHANGES = tuple(each.rank for each in (Action.OPENED, Action.JOINED, Action.RESOLVED))
#: The most alerts that are named for one delivery; a webhook may have thousands.
MOST_TOUCHED = 200
#: The id of a delivery, and the index of an item in it.
Position = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class TouchedAlert:
    """An alert that an item of a delivery opened or changed."""

    iid: int
    #: Its present title.
    title: str
    action: Action
    #: Position among the items of the delivery, from 1.
    item: int


def touched_alerts(delivery_id: int, *, session: Session) -> tuple[TouchedAlert, ...]:
    """Return the alerts that a delivery opened or changed, at most MOST_TOUCHED of them."""
    # Sorted here: for rows that have to be sorted, Postgres reads a table without statistics whole.
    found = (
        select(Occurrence, Alert.iid, Alert.title)
        .join(Alert, Alert.id == Occurrence.alert_id)
        .where(Occurrence.delivery_id == delivery_id)
        .limit(MOST_TOUCHED)
    )
    alerts = (alert for _, alert in _touched(found, session=session))
    return tuple(sorted(alerts, key=lambda each: each.item))


def only_alerts(delivery_ids: Collection[int], *, session: Session) -> Mapping[int, TouchedAlert]:
    """Return the one alert that each of these deliveries changed, by the delivery's id.

    The caller names deliveries that opened, joined or resolved no more than one.
    """
    is_change = and_(Occurrence.delivery_id == Delivery.id, Occurrence.action.in_(_CHANGES))
    occurrence: type[Occurrence] = Occurrence
    if session.get_bind().dialect.name == "postgresql":
        # One of each delivery: without statistics, Postgres takes those of several deliveries for
        # so many that it reads the table.
        one = select(Occurrence).where(is_change).limit(1).correlate(Delivery).lateral("touched")
        occurrence, is_change = aliased(Occurrence, one), true()
    found = (
        select(occurrence, Alert.iid, Alert.title)
        .select_from(Delivery)
        .join(occurrence, is_change)
        .join(Alert, Alert.id == occurrence.alert_id)
        .where(Delivery.id.in_(delivery_ids))
    )
    return dict(_touched(found, session=session))


def _touched(
    found: Select[Occurrence, int, str], *, session: Session
) -> Iterator[tuple[int, TouchedAlert]]:
    """Yield alerts that occurrences touched, each with the id of the delivery."""
    for occurrence, iid, title in session.execute(found):
        action, item = _action(occurrence), occurrence.item_index + 1
        yield occurrence.delivery_id, TouchedAlert(iid=iid, title=title, action=action, item=item)


def _action(occurrence: Occurrence) -> Action:
    return Action.LATE if occurrence.is_late else _ACTIONS[occurrence.action]


def read_position(text: str | None) -> Position | None:
    """Return the position in a cursor, None for no text, or raise QueryError."""
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
    following: Position | None,
    *,
    size: int,
    is_oldest_first: bool = False,
    session: Session,
) -> Page[AlertOccurrence]:
    """Return a page of an alert's reports, the newest first unless that is asked for."""
    position = (Occurrence.delivery_id, Occurrence.item_index)
    statement = (
        select(
            Occurrence,
            Delivery.received_at,
            Delivery.sender,
            Delivery.is_test,
            Delivery.integration_id,
        )
        .join(Delivery, Delivery.id == Occurrence.delivery_id)
        .where(Occurrence.alert_id == alert_id)
        .order_by(*(each.asc() if is_oldest_first else each.desc() for each in position))
        .limit(size + 1)
    )
    if following is not None:
        key = tuple_(*position)
        statement = statement.where(key > following if is_oldest_first else key < following)
    rows = session.execute(statement).all()
    last = rows[size - 1][0] if len(rows) > size else None
    return Page(
        items=tuple(
            AlertOccurrence(
                **columns_of(row, AlertOccurrence),
                action=_action(row[0]),
                item=row[0].item_index + 1,
                delivery_id=row[0].delivery_id,
            )
            for row in rows[:size]
        ),
        next_before=f"{last.delivery_id}_{last.item_index}" if last else None,
    )
