"""Removes what has had its day, in small slices so that nobody has to wait for it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from models import (
    AccessToken,
    Alert,
    AttemptCount,
    Authorization,
    Delivery,
    DeviceAuthorization,
    Integration,
    PersonalAccessToken,
    SignIn,
    SigningKey,
)

_SLICE = 500
#: Dead tokens are kept for a while: a reused one is recognized only as long as its row lives.
_DEAD_TOKENS_STAY = timedelta(days=30)
#: So long a device that polls without an end is told why.
_SPENT_DEVICES_STAY = timedelta(days=1)
#: Personal ones are few, and their owners may want to know what a script could do, and when.
_DEAD_PERSONAL_TOKENS_STAY = timedelta(days=365)


@dataclass(frozen=True, kw_only=True)
class Retention:
    """How much of the delivery log stays."""

    keep_deliveries: int
    keep_for: timedelta


def prune(
    retention: Retention, *, session: Session, now: datetime, between: Callable[[], None]
) -> dict[str, int]:
    """Remove expired rows and return how many of each kind went.

    `between` is called after each slice; the caller commits there, so that locks are short.
    """
    dead, forgotten = now - _DEAD_TOKENS_STAY, now - _DEAD_PERSONAL_TOKENS_STAY
    has_tokens = exists().where(AccessToken.authorization_id == Authorization.id)
    removed = {
        "sign_ins": _remove(SignIn.id, SignIn.expires_at < now, session, between),
        "attempt_counts": _remove(
            AttemptCount.subject, AttemptCount.window_ends_at < now, session, between
        ),
        "access_tokens": _remove(
            AccessToken.id,
            or_(
                AccessToken.revoked_at < dead,
                (AccessToken.expires_at < dead) & AccessToken.refresh_digest.is_(None),
            ),
            session,
            between,
        ),
        "personal_access_tokens": _remove(
            PersonalAccessToken.id,
            or_(
                PersonalAccessToken.revoked_at < forgotten,
                PersonalAccessToken.expires_at < forgotten,
            ),
            session,
            between,
        ),
        "device_authorizations": _remove(
            DeviceAuthorization.id,
            DeviceAuthorization.expires_at < now - _SPENT_DEVICES_STAY,
            session,
            between,
        ),
        # By then nothing that they signed is of any use, even as a hint.
        "signing_keys": _remove(SigningKey.id, SigningKey.retired_at < dead, session, between),
        "authorizations": _remove(
            Authorization.id,
            (Authorization.code_expires_at < dead) & ~has_tokens,
            session,
            between,
        ),
    }
    removed["deliveries"] = _prune_deliveries(retention, session, now, between)
    return removed


def _remove(
    key: InstrumentedAttribute[Any],
    condition: ColumnElement[bool],
    session: Session,
    between: Callable[[], None],
) -> int:
    total = 0
    while True:
        keys = session.scalars(select(key).where(condition).limit(_SLICE)).all()
        if not keys:
            return total
        session.execute(
            delete(key.class_).where(key.in_(keys)).execution_options(synchronize_session=False)
        )
        between()
        total += len(keys)


def _prune_deliveries(
    retention: Retention, session: Session, now: datetime, between: Callable[[], None]
) -> int:
    """Keep the newest of each integration, all of the last days, and what opened an alert."""
    opened_alert = exists().where(Alert.delivery_id == Delivery.id)
    is_old = Delivery.received_at < now - retention.keep_for
    total = 0
    for integration_id in session.scalars(select(Integration.id)).all():
        oldest_kept = session.scalar(
            select(Delivery.id)
            .where(Delivery.integration_id == integration_id)
            .order_by(Delivery.id.desc())
            .offset(retention.keep_deliveries - 1)
            .limit(1)
        )
        if oldest_kept is None:
            continue
        condition = (
            (Delivery.integration_id == integration_id)
            & (Delivery.id < oldest_kept)
            & is_old
            & ~opened_alert
        )
        total += _remove(Delivery.id, condition, session, between)
    orphans = Delivery.integration_id.is_(None) & is_old & ~opened_alert
    return total + _remove(Delivery.id, orphans, session, between)
