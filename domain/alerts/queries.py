"""What pages show of alerts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, or_, select
from sqlalchemy.orm import Session

from domain.alerts.body import read_object
from domain.alerts.details import flatten
from domain.alerts.formats import Reading, only_item, read_payload, shown_part
from domain.alerts.incoming import (
    IncomingAlert,
    MissingAttributes,
    NoValidItem,
    Severity,
    UnreadableBody,
)
from domain.alerts.integrations import IntegrationType
from domain.alerts.text import pretty_json, storable
from domain.errors import NotFoundError
from domain.paging import Page, Slice
from models import Alert, Delivery, Integration, Project

OPEN_STATUSES = ("triggered", "acknowledged")
STATUSES = ("triggered", "acknowledged", "resolved", "ignored")
#: Tabs of the list, with the statuses behind each.
TABS: dict[str, tuple[str, ...]] = {
    "open": OPEN_STATUSES,
    "triggered": ("triggered",),
    "acknowledged": ("acknowledged",),
    "resolved": ("resolved",),
    "ignored": ("ignored",),
    "all": STATUSES,
}
_SEVERITIES = tuple(Severity)
LARGEST_IID = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class AlertRow:
    """An alert as a list shows it."""

    id: int
    iid: int
    title: str
    severity: str
    status: str
    started_at: datetime
    ended_at: datetime | None
    events: int
    service: str | None
    environment: str | None
    monitoring_tool: str | None
    hosts: tuple[str, ...]
    last_event_at: datetime
    integration_name: str | None
    project_path: str


@dataclass(frozen=True, kw_only=True)
class AlertDetail(AlertRow):
    """An alert with every field that was kept; what only the payload has may be absent."""

    description: str | None
    runbook: str | None
    query: str | None
    markdown: str | None
    y_label: str | None
    generator_url: str | None
    details: tuple[tuple[str, str], ...]
    payload: str
    fingerprint_source: str
    severity_reason: str
    received_at: datetime | None


_ROWS = (
    select(Alert, Integration.name.label("integration_name"), Project.path.label("project_path"))
    .join(Project, Project.id == Alert.project_id)
    .outerjoin(Integration, Integration.id == Alert.integration_id)
)


def _row(row: Row[*tuple[Any, ...]]) -> AlertRow:
    alert: Alert = row[0]
    return AlertRow(
        id=alert.id,
        iid=alert.iid,
        title=alert.title,
        severity=_SEVERITIES[alert.severity].value,
        status=alert.status,
        started_at=alert.started_at,
        ended_at=alert.ended_at,
        events=alert.events,
        service=alert.service,
        environment=alert.environment,
        monitoring_tool=alert.monitoring_tool,
        hosts=tuple(alert.hosts.split("\n")) if alert.hosts else (),
        last_event_at=alert.last_event_at,
        integration_name=row.integration_name,
        project_path=row.project_path,
    )


@dataclass(frozen=True, kw_only=True)
class AlertFilter:
    """Which alerts of a project are wanted."""

    project_id: int
    statuses: tuple[str, ...]
    search: str = ""


def _conditions(wanted: AlertFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [
        Alert.project_id == wanted.project_id,
        Alert.status.in_(wanted.statuses),
    ]
    for word in wanted.search.replace("\x00", " ").lower().split()[:10]:
        columns = (Alert.title, Alert.description, Alert.service, Alert.monitoring_tool)
        conditions.append(
            or_(*(func.lower(column).contains(word, autoescape=True) for column in columns))
        )
    return conditions


def list_alerts(wanted: AlertFilter, part: Slice, *, session: Session) -> Page[AlertRow]:
    """Return a part of the alerts, the newest first."""
    statement = _ROWS.where(*_conditions(wanted))
    if part.after is not None:
        newer = _fetch(
            statement.where(Alert.id > part.after).order_by(Alert.id), part, session=session
        )
        items = tuple(reversed(newer[: part.size]))
        has_newer, has_older = len(newer) > part.size, True
    else:
        before = statement if part.before is None else statement.where(Alert.id < part.before)
        older = _fetch(before.order_by(Alert.id.desc()), part, session=session)
        items = tuple(older[: part.size])
        has_newer, has_older = part.before is not None, len(older) > part.size
    return Page(
        items=items,
        next_before=items[-1].id if items and has_older else None,
        previous_after=items[0].id if items and has_newer else None,
    )


def _fetch(
    statement: Select[*tuple[Any, ...]], part: Slice, *, session: Session
) -> Sequence[AlertRow]:
    return [_row(row) for row in session.execute(statement.limit(part.size + 1))]


def open_alerts(
    project_ids: Sequence[int], *, limit: int, session: Session
) -> tuple[AlertRow, ...]:
    """Return what waits for somebody in these projects: the worst first, then the newest."""
    rows = session.execute(
        _ROWS.where(Alert.project_id.in_(project_ids), Alert.status.in_(OPEN_STATUSES))
        .order_by(Alert.severity, Alert.id.desc())
        .limit(limit)
    )
    return tuple(_row(row) for row in rows)


def count_by_status(project_id: int, *, session: Session) -> dict[str, int]:
    """Return how many alerts a project has in each status; every status is a key."""
    rows = session.execute(
        select(Alert.status, func.count())
        .where(Alert.project_id == project_id)
        .group_by(Alert.status)
    )
    return dict.fromkeys(STATUSES, 0) | {status: count for status, count in rows}  # noqa: C416


def get_alert(project_id: int, iid: int, *, session: Session, reading: Reading) -> AlertDetail:
    """Return an alert with all that its payload says, or raise NotFoundError."""
    found = session.execute(_ROWS.where(Alert.project_id == project_id, Alert.iid == iid)).first()
    if found is None:
        message = f"There is no alert {iid} in this project."
        raise NotFoundError(message)
    alert: Alert = found[0]
    delivery = session.get(Delivery, alert.delivery_id) if alert.delivery_id else None
    return _detail(found, delivery, reading=reading)


def _detail(
    found: Row[*tuple[Any, ...]], delivery: Delivery | None, *, reading: Reading
) -> AlertDetail:
    alert: Alert = found[0]
    item, part = _said(delivery, alert.item_index, reading=reading)
    return AlertDetail(
        **vars(_row(found)),
        description=alert.description,
        runbook=item.runbook if item else None,
        query=item.query if item else None,
        markdown=item.markdown if item else None,
        y_label=item.y_label if item else None,
        generator_url=item.generator_url if item else None,
        details=flatten(part),
        payload=pretty(delivery.body) if delivery and delivery.body else "",
        fingerprint_source=item.fingerprint_source if item else "",
        severity_reason=item.severity_reason if item else "",
        received_at=delivery.received_at if delivery else None,
    )


def _said(
    delivery: Delivery | None, item_index: int, *, reading: Reading
) -> tuple[IncomingAlert | None, dict[str, Any]]:
    """Read the stored body once more: it is kept as it came, and only there."""
    if delivery is None or delivery.body is None:
        return None, {}
    try:
        payload = only_item(
            read_object(delivery.body, nesting_limit=reading.nesting_limit),
            delivery.format,
            item_index,
        )
        parsed = read_payload(
            payload,
            IntegrationType(delivery.format),
            now=delivery.received_at,
            reading=reading,
        )
    except (UnreadableBody, MissingAttributes, NoValidItem):
        return None, {}
    return next(iter(parsed.alerts), None), dict(shown_part(payload, delivery.format, 0))


#: Bodies above this are shown as they came: laying them out would help nobody.
_LARGEST_PRETTY = 200_000


def pretty(body: bytes) -> str:
    """Return a body laid out for reading, or as it came if it cannot be."""
    if len(body) <= _LARGEST_PRETTY:
        try:
            return pretty_json(read_object(body, nesting_limit=_DEEPEST_PRETTY))
        except UnreadableBody:
            pass  # refused bodies are shown as well, and some of them are no JSON
    return storable(body.decode("utf-8", "replace"))


#: Deeper bodies are never accepted, whatever the setting.
_DEEPEST_PRETTY = 500
