"""Labels of alerts, for the matchers in silences, routes and rules.

The labels come from an Alertmanager payload, or are the top-level members of a generic payload. The
alert's own fields override these labels. If the payload is no longer stored, only the alert's own
fields are available.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from domain.alerts.formats.base import AlertFormat, ParserSettings
from domain.alerts.formats.registry import get_format
from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.json_body import LongNumber
from domain.alerts.parsing.text_conversion import convert_to_text, replace_unstorable_characters
from models import Alert, Delivery

_SEVERITIES = tuple(Severity)
#: Maximum size of bodies in memory, in bytes, and maximum number of IDs in a query.
_MAX_BATCH_BYTES = 8_000_000
_MAX_BATCH_IDS = 1_000


@dataclass(frozen=True, kw_only=True)
class AlertLabels:
    """The alert data that matchers and conditions use."""

    alert_id: int
    project_id: int
    iid: int
    severity: str
    environment: str | None
    service: str | None
    #: Labels by name, without empty values.
    labels: Mapping[str, str]


@dataclass(frozen=True)
class _RequestedDeliveryBody:
    """A delivery, and the indexes of the requested items."""

    id: int
    size: int
    items: frozenset[int]


def find_alert_labels(
    alert_ids: Iterable[int], *, session: Session, reading: ParserSettings
) -> Mapping[int, AlertLabels]:
    """Return the labels of alerts by ID. IDs without an alert are omitted.

    One query is made for each thousand alerts, and a few more queries are made for their bodies.
    """
    ids = sorted(set(alert_ids))
    rows: list[Row[*tuple[Any, ...]]] = []
    for begin in range(0, len(ids), _MAX_BATCH_IDS):
        rows += _fetch_alert_rows(ids[begin : begin + _MAX_BATCH_IDS], session=session)
    payloads = _find_payload_labels(rows, session=session, reading=reading)
    return {
        row.id: AlertLabels(
            alert_id=row.id,
            project_id=row.project_id,
            iid=row.iid,
            severity=_SEVERITIES[row.severity].value,
            environment=row.environment,
            service=row.service,
            labels=_merge_labels(payloads.get((row.delivery_id, row.item_index), {}), row),
        )
        for row in rows
    }


def _fetch_alert_rows(ids: Sequence[int], *, session: Session) -> Sequence[Row[*tuple[Any, ...]]]:
    columns = (
        *(Alert.id, Alert.project_id, Alert.iid, Alert.title, Alert.status, Alert.severity),
        *(Alert.environment, Alert.service, Alert.monitoring_tool, Alert.hosts),
        *(Alert.delivery_id, Alert.item_index),
        func.coalesce(func.length(Delivery.body), 0).label("size"),
    )
    return session.execute(
        select(*columns)
        .outerjoin(Delivery, Delivery.id == Alert.delivery_id)
        .where(Alert.id.in_(ids))
        .order_by(Alert.id)
    ).all()


def _merge_labels(payload: Mapping[str, str], row: Row[*tuple[Any, ...]]) -> Mapping[str, str]:
    """Return the labels of a payload, overridden by the alert's own fields."""
    own = {
        "title": row.title,
        "severity": _SEVERITIES[row.severity].value,
        "status": row.status,
        "environment": row.environment,
        "service": row.service,
        "monitoring_tool": row.monitoring_tool,
        "host": row.hosts.split("\n")[0],
    }
    known = {name: value for name, value in own.items() if value}
    return {"alertname": row.title, **payload, **known}


def _find_payload_labels(
    rows: Sequence[Row[*tuple[Any, ...]]], *, session: Session, reading: ParserSettings
) -> Mapping[tuple[int, int], Mapping[str, str]]:
    """Return the labels of items by delivery and index. Each body is parsed once."""
    found: dict[tuple[int, int], Mapping[str, str]] = {}
    for bodies in _group_bodies_into_batches(_list_requested_bodies(rows)):
        wanted = {body.id: body.items for body in bodies}
        statement = select(Delivery.id, Delivery.format, Delivery.body).where(
            Delivery.id.in_(wanted)
        )
        for delivery_id, format_name, body in session.execute(statement):
            body_format = get_format(format_name)
            payload = body_format.decode_stored_body(body, reading=reading)
            for index in wanted[delivery_id]:
                found[delivery_id, index] = _extract_labels(payload, body_format, index)
    return found


def _list_requested_bodies(
    rows: Sequence[Row[*tuple[Any, ...]]],
) -> Iterator[_RequestedDeliveryBody]:
    items: dict[int, set[int]] = {}
    sizes: dict[int, int] = {}
    for row in rows:
        if row.size:
            items.setdefault(row.delivery_id, set()).add(row.item_index)
            sizes[row.delivery_id] = row.size
    for delivery_id, indexes in items.items():
        yield _RequestedDeliveryBody(delivery_id, sizes[delivery_id], frozenset(indexes))


def _group_bodies_into_batches(
    bodies: Iterable[_RequestedDeliveryBody],
) -> Iterator[list[_RequestedDeliveryBody]]:
    """Group bodies into batches that respect the limits on size and number."""
    pack: list[_RequestedDeliveryBody] = []
    size = 0
    for body in bodies:
        if pack and (size + body.size > _MAX_BATCH_BYTES or len(pack) == _MAX_BATCH_IDS):
            yield pack
            pack, size = [], 0
        pack.append(body)
        size += body.size
    if pack:
        yield pack


def _extract_labels(payload: object, body_format: AlertFormat, index: int) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for members in body_format.labels(payload, index):
        found |= _convert_to_texts(members)
    return found


def _convert_to_texts(members: object) -> dict[str, str]:
    """Return the strings, numbers and booleans in an object as non-empty strings."""
    if not isinstance(members, dict):
        return {}
    texts = (
        (replace_unstorable_characters(name), replace_unstorable_characters(convert_to_text(value)))
        for name, value in members.items()
        if isinstance(value, str | int | float | LongNumber)
    )
    return {name: text for name, text in texts if text}
