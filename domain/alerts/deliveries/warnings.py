"""What a maintainer should know of an integration's last deliveries: once, and not row by row."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Text, cast, func, or_, select
from sqlalchemy.orm import Session

from domain.alerts.deliveries.log import RECENT
from domain.alerts.reading.formats import LOOKS_LIKE_A_WEBHOOK, LOOKS_LIKE_ONE_ALERT
from models import Delivery


@dataclass(frozen=True, kw_only=True)
class Finding:
    """How often something happened, and when it did last."""

    count: int
    last_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class DeliveryWarnings:
    """What is wrong with the newest deliveries, tests left out."""

    #: Alerts that senders left out of their webhooks.
    left_out: Finding
    #: Deliveries that look like the format of another type.
    misread: Finding


def _beginning(sentence: str) -> str:
    # Quotation marks are written in two ways in JSON; what comes before them in one.
    return sentence.partition("“")[0]


def _is_misread() -> ColumnElement[bool]:
    return or_(
        Delivery.reason.contains(_beginning(LOOKS_LIKE_ONE_ALERT), autoescape=True),
        cast(Delivery.parse_warnings, Text).contains(
            _beginning(LOOKS_LIKE_A_WEBHOOK), autoescape=True
        ),
    )


def warnings_of(integration_id: int, *, session: Session) -> DeliveryWarnings:
    """Look through the newest deliveries; the cost does not grow with the log."""
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
    )
