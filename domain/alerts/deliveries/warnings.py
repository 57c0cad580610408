"""Summarizes what is wrong with the newest deliveries of an integration."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Text, cast, func, or_, select
from sqlalchemy.orm import Session

from domain.alerts.deliveries.log import RECENT
from domain.alerts.formats.base import LOOKS_LIKE
from domain.alerts.reading.severity import unknown_words
from models import Delivery

#: The warnings of so many deliveries are read for words.
_READ_WHOLE = 50


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The number of times that a problem occurred, and the last one."""

    count: int
    last_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class DeliveryWarnings:
    """The problems of the newest deliveries, without test alerts."""

    #: Alerts that senders left out of their webhooks (truncatedAlerts).
    left_out: Finding
    #: Deliveries in the format of another type of integration.
    misread: Finding
    #: The severity words of the latest deliveries that were not known, each once.
    unknown_words: tuple[str, ...]


def _is_misread() -> ColumnElement[bool]:
    return or_(
        Delivery.reason.contains(LOOKS_LIKE, autoescape=True),
        cast(Delivery.parse_warnings, Text).contains(LOOKS_LIKE, autoescape=True),
    )


def warnings_of(integration_id: int, *, session: Session) -> DeliveryWarnings:
    """Return the problems of the newest deliveries; the cost does not grow with the log."""
    recent = (
        select(
            Delivery.received_at,
            Delivery.truncated_alerts.label("left_out"),
            _is_misread().label("is_misread"),
            (Delivery.skipped + 1).label("times"),
        )
        .where(Delivery.integration_id == integration_id, Delivery.is_test.is_(False))
        .order_by(Delivery.id.desc())
        .limit(RECENT)
        .subquery()
    )
    last = func.max(recent.c.received_at, type_=recent.c.received_at.type)
    truncated = select(func.sum(recent.c.left_out), last).where(recent.c.left_out > 0)
    misread = select(func.sum(recent.c.times), last).where(recent.c.is_misread)
    (left_out, left_out_at), (wrong, wrong_at) = (
        session.execute(statement).one() for statement in (truncated, misread)
    )
    return DeliveryWarnings(
        left_out=Finding(count=int(left_out or 0), last_at=left_out_at),
        misread=Finding(count=int(wrong or 0), last_at=wrong_at),
        unknown_words=_unknown_words(integration_id, session=session),
    )


def _unknown_words(integration_id: int, *, session: Session) -> tuple[str, ...]:
    recent = (
        select(Delivery.id, Delivery.parse_warnings)
        .where(Delivery.integration_id == integration_id, Delivery.is_test.is_(False))
        .order_by(Delivery.id.desc())
        .limit(_READ_WHOLE)
    )
    rows = session.execute(recent).all()
    return unknown_words(warning for row in rows for warning in row.parse_warnings)
