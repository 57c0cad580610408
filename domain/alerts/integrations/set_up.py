"""Whether an integration receives: what its last requests came to, and what to change."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Row, case, func, select
from sqlalchemy.orm import Session

from domain.alerts.deliveries.types import REFUSED_FROM, outcome_of
from domain.alerts.integrations.senders import LOOKED_AT, advice_for, sender_of
from models import Delivery

#: So many attempts are shown, of so many that are looked at.
_SHOWN, _LOOKED_AT = 5, 50
_ACCEPTED = "accepted"


class SetUpStage(StrEnum):
    """The stages of the set-up."""

    #: No sender has reached it.
    WAITING = "waiting"
    #: The newest request was refused.
    REFUSED = "refused"
    RECEIVING = "receiving"


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A request of a sender."""

    delivery_id: int
    received_at: datetime
    outcome: str
    status_code: int
    #: Why it was refused.
    reason: str | None
    address: str
    #: The name of the program, if it is known.
    sender: str | None
    #: What to change; None for an accepted one.
    advice: str | None
    #: The number of refusals like this one that are not listed.
    skipped: int


@dataclass(frozen=True, kw_only=True)
class SetUp:
    """How far an integration has come."""

    stage: SetUpStage
    #: The newest first.
    attempts: tuple[Attempt, ...]
    #: The newest of each kind since the last accepted one.
    problems: tuple[Attempt, ...]

    @property
    def newest(self) -> Attempt:
        """The newest attempt; there is none while it waits."""
        return self.attempts[0]


def set_up_of(integration_id: int, *, session: Session) -> SetUp:
    """Return what the last requests of senders came to; tests of users do not count."""
    is_refused = Delivery.status_code >= REFUSED_FROM
    rows = session.execute(
        select(
            Delivery.id,
            Delivery.received_at,
            Delivery.status_code,
            Delivery.reason,
            Delivery.sender,
            Delivery.user_agent,
            Delivery.skipped,
            case((is_refused, func.substr(Delivery.body, 1, LOOKED_AT))).label("start"),
        )
        .where(Delivery.integration_id == integration_id, Delivery.is_test.is_(False))
        .order_by(Delivery.id.desc())
        .limit(_LOOKED_AT)
    ).all()
    attempts = tuple(_attempt(row) for row in rows)
    return SetUp(stage=_stage(attempts), attempts=attempts[:_SHOWN], problems=_problems(attempts))


def _attempt(row: Row[Any]) -> Attempt:
    outcome = outcome_of(row.status_code)
    sender = sender_of(row.user_agent, row.start)
    return Attempt(
        delivery_id=row.id,
        received_at=row.received_at,
        outcome=outcome,
        status_code=row.status_code,
        reason=row.reason,
        address=row.sender,
        sender=sender.name if sender.agents else None,
        advice=None if outcome == _ACCEPTED else advice_for(row.status_code, sender),
        skipped=row.skipped,
    )


def _stage(attempts: tuple[Attempt, ...]) -> SetUpStage:
    if not attempts:
        return SetUpStage.WAITING
    is_accepted = attempts[0].outcome == _ACCEPTED
    return SetUpStage.RECEIVING if is_accepted else SetUpStage.REFUSED


def _problems(attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    found: dict[tuple[int, str | None, str | None], Attempt] = {}
    for attempt in attempts:
        if attempt.outcome == _ACCEPTED:
            break
        found.setdefault((attempt.status_code, attempt.reason, attempt.sender), attempt)
    return tuple(found.values())[:_SHOWN]
