"""Removes what has had its day, in small slices so that nobody has to wait for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from models import (
    AccessToken,
    Alert,
    Application,
    ApplicationSecret,
    AttemptCount,
    Authorization,
    Bot,
    Delivery,
    DeviceAuthorization,
    Integration,
    Mail,
    Member,
    PersonalAccessToken,
    PushedRequest,
    SeenProof,
    SignIn,
    SigningKey,
)

_SLICE = 500
#: Dead tokens are kept for a while: a reused one is recognized only as long as its row lives.
_DEAD_TOKENS_STAY = timedelta(days=30)
#: So long a device that polls without an end is told why.
_SPENT_DEVICES_STAY = timedelta(days=1)
#: So long nobody is written to twice about one thing; longer than any notice is given ahead.
_LETTERS_STAY = timedelta(days=90)
#: Personal ones are few, and their owners may want to know what a script could do, and when.
_DEAD_PERSONAL_TOKENS_STAY = timedelta(days=365)
#: A client that registered itself without anybody's token, and never asked for one.
_IDLE_CLIENTS_STAY = timedelta(days=30)


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
        "application_secrets": _remove(
            ApplicationSecret.id, ApplicationSecret.expires_at < now, session, between
        ),
        # A bot is nothing without its token.
        "bot_members": _remove(Member.id, _is_idle_bot(now), session, between),
        "letters": _remove(Mail.id, Mail.created_at < now - _LETTERS_STAY, session, between),
        "device_authorizations": _remove(
            DeviceAuthorization.id,
            DeviceAuthorization.expires_at < now - _SPENT_DEVICES_STAY,
            session,
            between,
        ),
        "pushed_requests": _remove(
            PushedRequest.id, PushedRequest.expires_at < now, session, between
        ),
        "seen_proofs": _remove(SeenProof.digest, SeenProof.expires_at < now, session, between),
        # Nobody's, and of use to nobody: such a client may register again.
        "idle_clients": _remove(
            Application.id,
            Application.registration_digest.is_not(None)
            & Application.is_instance_wide
            & Application.last_used_at.is_(None)
            & (Application.created_at < now - _IDLE_CLIENTS_STAY),
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


def _is_idle_bot(now: datetime) -> ColumnElement[bool]:
    bots = select(Bot.user_id)
    busy = select(PersonalAccessToken.user_id).where(
        PersonalAccessToken.revoked_at.is_(None), PersonalAccessToken.expires_at > now
    )
    return Member.user_id.in_(bots) & Member.user_id.not_in(busy)


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
        _delete(key, keys, session)
        between()
        total += len(keys)


def _delete(key: InstrumentedAttribute[Any], keys: Sequence[Any], session: Session) -> None:
    session.execute(
        delete(key.class_).where(key.in_(keys)).execution_options(synchronize_session=False)
    )


def _prune_deliveries(
    retention: Retention, session: Session, now: datetime, between: Callable[[], None]
) -> int:
    """Keep the newest of each integration, all of the last days, and what an alert shows."""
    is_shown = exists().where(Alert.delivery_id == Delivery.id)
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
            & ~is_shown
        )
        total += _remove_upwards(condition, session, between)
    orphans = Delivery.integration_id.is_(None) & is_old & ~is_shown
    return total + _remove_upwards(orphans, session, between)


def _remove_upwards(
    condition: ColumnElement[bool], session: Session, between: Callable[[], None]
) -> int:
    """Remove deliveries from the oldest on: no slice goes once more over all those that stay."""
    total, last = 0, 0
    while True:
        keys = session.scalars(
            select(Delivery.id)
            .where(condition, Delivery.id > last)
            .order_by(Delivery.id)
            .limit(_SLICE)
        ).all()
        if not keys:
            return total
        _delete(Delivery.id, keys, session)
        between()
        total, last = total + len(keys), keys[-1]
