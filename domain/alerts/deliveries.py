"""The delivery log: what came, and what became of it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session, defer

from domain.alerts.parcel import Parcel
from domain.alerts.queries import pretty
from domain.errors import NotFoundError
from domain.hot import HotConnection
from domain.paging import Page, Slice
from models import Delivery

_INSERT = insert(Delivery)


@dataclass(frozen=True, kw_only=True)
class DeliveryView:
    """A delivery as pages show it."""

    id: int
    received_at: datetime
    status_code: int
    reason: str | None
    size: int
    sender: str
    created: int
    grouped: int
    resolved: int
    remarks: tuple[str, ...]
    truncated_alerts: int
    is_test: bool
    body: str | None = None

    @property
    def outcome(self) -> str:
        """Whether the sender was told that all is well."""
        return "accepted" if self.status_code < 300 else "refused"  # noqa: PLR2004 - 2xx


def store_refusal(parcel: Parcel, status_code: int, reason: str, *, hot: HotConnection) -> None:
    """Write a refused delivery into the log; its body only if the sender had the key."""
    values: dict[str, Any] = {
        "project_id": parcel.project_id,
        "integration_id": parcel.integration_id,
        "format": parcel.format,
        "is_test": parcel.is_test,
        "received_at": parcel.received_at,
        "status_code": status_code,
        "reason": reason,
        "sender": parcel.sender,
        "size": len(parcel.body),
        "body": parcel.body or None,
        "opened": 0,
        "joined": 0,
        "resolved": 0,
        "remarks": [],
        "truncated_alerts": 0,
    }
    hot.all(_INSERT, values)


class RefusalSampler:
    """Lets so many refusals of an integration into the log each minute, and counts the rest.

    A sender that is refused a thousand times a second must not fill the disk.
    """

    def __init__(self) -> None:
        """Start with an empty minute."""
        self._minute = -1
        self._seen: dict[int, int] = {}

    def is_kept(self, integration_id: int, *, now: datetime, per_minute: int) -> bool:
        """Tell whether this refusal goes into the log. In each process for itself."""
        minute = int(now.timestamp() // 60)
        if minute != self._minute:
            self._minute, self._seen = minute, {}
        self._seen[integration_id] = self._seen.get(integration_id, 0) + 1
        return self._seen[integration_id] <= per_minute


def _view(delivery: Delivery, *, body: str | None = None) -> DeliveryView:
    return DeliveryView(
        id=delivery.id,
        received_at=delivery.received_at,
        status_code=delivery.status_code,
        reason=delivery.reason,
        size=delivery.size,
        sender=delivery.sender,
        created=delivery.opened,
        grouped=delivery.joined,
        resolved=delivery.resolved,
        remarks=tuple(delivery.remarks),
        truncated_alerts=delivery.truncated_alerts,
        is_test=delivery.is_test,
        body=body,
    )


def list_deliveries(integration_id: int, part: Slice, *, session: Session) -> Page[DeliveryView]:
    """Return a part of an integration's deliveries, the newest first."""
    statement = (
        select(Delivery)
        .options(defer(Delivery.body))
        .where(Delivery.integration_id == integration_id)
        .order_by(Delivery.id.desc())
        .limit(part.size + 1)
    )
    if part.before is not None:
        statement = statement.where(Delivery.id < part.before)
    rows = session.scalars(statement).all()
    items = tuple(_view(row) for row in rows[: part.size])
    return Page(items=items, next_before=items[-1].id if items and len(rows) > part.size else None)


def get_delivery(integration_id: int, delivery_id: int, *, session: Session) -> DeliveryView:
    """Return a delivery with its body, or raise NotFoundError."""
    delivery = session.scalar(
        select(Delivery).where(
            Delivery.id == delivery_id, Delivery.integration_id == integration_id
        )
    )
    if delivery is None:
        message = "This delivery is not kept any more."
        raise NotFoundError(message)
    return _view(delivery, body=pretty(delivery.body) if delivery.body else None)
