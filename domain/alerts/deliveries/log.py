"""Lists the deliveries of an integration, and returns one with its body."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, cast, func, select
from sqlalchemy.orm import Session, defer

from domain.alerts.deliveries.types import REFUSED_FROM, StoredDelivery
from domain.alerts.deliveries.types import Delivery as ShownDelivery
from domain.database.paging import Page, Slice
from domain.errors import NotFoundError, QueryError
from models import Delivery

#: The responses to deliveries over the rate limit: see `receivers.OverLimitError`.
_OVER_LIMIT = (429, 503)
_STATUS_CODE = re.compile(r"[0-9]{3}")
#: The number of newest deliveries that are counted: the cost must not grow with the log.
RECENT = 1_000


class DeliverySelection(StrEnum):
    """A selection of deliveries, by its value in the URL."""

    ALL = "all"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    WARNINGS = "remarks"
    TESTS = "tests"

    @property
    def label(self) -> str:
        """The label of the selection."""
        return _LABELS[self]


_LABELS = {
    DeliverySelection.ALL: "All",
    DeliverySelection.ACCEPTED: "Accepted",
    DeliverySelection.REFUSED: "Rejected",
    DeliverySelection.WARNINGS: "With warnings",
    DeliverySelection.TESTS: "Tests",
}

_CONDITIONS: Mapping[DeliverySelection, ColumnElement[bool]] = {
    DeliverySelection.ACCEPTED: Delivery.status_code < REFUSED_FROM,
    DeliverySelection.REFUSED: Delivery.status_code >= REFUSED_FROM,
    DeliverySelection.WARNINGS: cast(Delivery.parse_warnings, Text) != "[]",
    DeliverySelection.TESTS: Delivery.is_test.is_(True),
}


@dataclass(frozen=True, kw_only=True)
class DeliveryFilter:
    """A filter on the deliveries of an integration; without a status code it matches any."""

    integration_id: int
    show: DeliverySelection = DeliverySelection.ALL
    status_code: int | None = None


@dataclass(frozen=True, kw_only=True)
class Refusals:
    """The number of refused deliveries among the newest ones, by status code."""

    by_status: Mapping[int, int]
    #: The number of those refused by the rate limit.
    shed: int
    last_shed_at: datetime | None


def read_selection(text: str | None) -> DeliverySelection:
    """Return the selection of that name, or raise QueryError."""
    try:
        return DeliverySelection(text or DeliverySelection.ALL)
    except ValueError as error:
        raise QueryError(
            f"show must be one of {', '.join(DeliverySelection)}.", field="show"
        ) from error


def read_status(text: str | None) -> int | None:
    """Return a status code of three digits, None for no text, or raise QueryError."""
    if not text:
        return None
    if not _STATUS_CODE.fullmatch(text):
        raise QueryError("status must be a status code, of three digits.", field="status")
    return int(text)


def list_deliveries(
    wanted: DeliveryFilter, part: Slice, *, session: Session
) -> Page[ShownDelivery]:
    """Return a page of an integration's deliveries, the newest first."""
    statement = _filtered(wanted).order_by(Delivery.id.desc()).limit(part.size + 1)
    if part.before is not None:
        statement = statement.where(Delivery.id < part.before)
    rows = session.scalars(statement).all()
    items = tuple(map(ShownDelivery.model_validate, rows[: part.size]))
    return Page(items=items, next_before=items[-1].id if items and len(rows) > part.size else None)


def _filtered(wanted: DeliveryFilter) -> Select[Any]:
    statement = (
        select(Delivery)
        .options(defer(Delivery.body))
        .where(Delivery.integration_id == wanted.integration_id)
    )
    if wanted.show in _CONDITIONS:
        statement = statement.where(_CONDITIONS[wanted.show])
    if wanted.status_code is not None:
        statement = statement.where(Delivery.status_code == wanted.status_code)
    return statement


def count_refusals(integration_id: int, *, session: Session) -> Refusals:
    """Count the refusals among the newest deliveries, those that were only counted included."""
    recent = (
        select(Delivery.status_code, Delivery.skipped, Delivery.received_at)
        .where(Delivery.integration_id == integration_id)
        .order_by(Delivery.id.desc())
        .limit(RECENT)
        .subquery()
    )
    rows = session.execute(
        select(
            recent.c.status_code,
            func.sum(recent.c.skipped + 1),
            func.max(recent.c.received_at, type_=recent.c.received_at.type),
        )
        .where(recent.c.status_code >= REFUSED_FROM)
        .group_by(recent.c.status_code)
        .order_by(recent.c.status_code)
    ).all()
    counts = Counter({status: int(count) for status, count, _ in rows})
    shed_at = [moment for status, _, moment in rows if status in _OVER_LIMIT]
    return Refusals(
        by_status=dict(counts),
        shed=sum(counts[status] for status in _OVER_LIMIT),
        last_shed_at=max(shed_at, default=None),
    )


def get_delivery(integration_id: int, delivery_id: int, *, session: Session) -> StoredDelivery:
    """Return a delivery with its body, or raise NotFoundError."""
    return StoredDelivery.model_validate(get_row(integration_id, delivery_id, session=session))


def get_body(integration_id: int, delivery_id: int, *, session: Session) -> bytes:
    """Return the body as received; raise NotFoundError if delivery or body is not stored."""
    body = get_row(integration_id, delivery_id, session=session).body
    if body is None:
        raise NotFoundError("The body of this delivery was not stored.")
    return body


def get_row(integration_id: int, delivery_id: int, *, session: Session) -> Delivery:
    """Return the row of a delivery to the rooms above, or raise NotFoundError."""
    delivery = session.scalar(
        select(Delivery).where(
            Delivery.id == delivery_id, Delivery.integration_id == integration_id
        )
    )
    if delivery is None:
        raise NotFoundError("This delivery is no longer stored.")
    return delivery
