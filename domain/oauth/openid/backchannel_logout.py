"""Notifies applications that sign-ins have ended (OpenID Connect Back-Channel Logout 1.0).

A row of `BackchannelSession` records that a sign-in at this service was used for an application.
When the sign-in is deleted for any reason, the database clears the reference (ON DELETE SET NULL).
The notification is then due.
"""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from joserfc import jwt
from sqlalchemy import case, delete, exists, func, or_, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_update, build_session_insert
from domain.core.due_time_sql import NOW
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_hex
from domain.delivery.queue import (
    Backoff,
    DeliveryQueue,
    FailingDestination,
    QueueState,
    read_queue_state,
)
from domain.oauth.openid.id_tokens import get_subject
from domain.oauth.openid.signing_keys import SIGNING_ALGORITHM, get_or_create_signing_key
from models import Application, BackchannelSession

_LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
#: Lifetime of a logout token, at most two minutes (section 2.4).
_TOKEN_LIFETIME = timedelta(minutes=2)
#: Maximum number of attempts; the last attempt is about two hours after the first.
_MAX_ATTEMPTS = 8
_IS_ENDED = BackchannelSession.sign_in_id.is_(None)
LOGOUT_QUEUE = DeliveryQueue(
    due_at=BackchannelSession.due_at,
    attempts=BackchannelSession.tries,
    claim_lifetime=timedelta(minutes=2),
    backoff=Backoff(first=timedelta(minutes=1), longest=timedelta(minutes=64)),
    condition=_IS_ENDED,
)
#: SQL condition that a notification about an ended sign-in is due.
LOGOUT_NOTIFICATIONS_ARE_DUE = exists().where(LOGOUT_QUEUE.build_due_condition(NOW))


@dataclass(frozen=True, kw_only=True)
class EndedSession:
    """A sign-in that has ended, with the application that must be notified."""

    id: int
    application_id: int
    application_uid: str
    user_id: int
    sid: str
    #: Number of attempts, including this one.
    tries: int


def compute_session_id(sign_in_id: int, application_uid: str, *, keyring: Keyring) -> str:
    """Return the session ID of a sign-in, which differs for each application."""
    return compute_session_ids(sign_in_id, application_uid, keyring=keyring)[0]


def compute_session_ids(
    sign_in_id: int, application_uid: str, *, keyring: Keyring
) -> tuple[str, ...]:
    """Return the session ID of a sign-in for every secret key, newest key first."""
    digests = keyring.compute_digests(f"sign-in {sign_in_id} at {application_uid}")
    return tuple(urlsafe_b64encode(each).rstrip(b"=").decode() for each in digests)


def store_backchannel_session(
    application: Application,
    sign_in_id: int,
    sid: str,
    *,
    user_id: int,
    session: Session,
    now: datetime,
) -> None:
    """Record the sign-in of a user at an application that has a back-channel logout URL."""
    if application.backchannel_logout_uri is None:
        return
    row = {
        "application_id": application.id,
        "sign_in_id": sign_in_id,
        "user_id": user_id,
        "sid": sid,
        "due_at": now,
        "tries": 0,
    }
    insert = build_session_insert(BackchannelSession, session=session).values(row)
    session.execute(insert.on_conflict_do_nothing())


def claim_ended_sessions(
    *, maximum: int, session: Session, now: datetime
) -> Sequence[EndedSession]:
    """Claim and return up to `maximum` ended sessions whose notifications are due.

    Sessions that have been due for the longest time are claimed first.
    """
    claim = LOGOUT_QUEUE.claim_due_rows(
        BackchannelSession.id, maximum=maximum, session=session, now=now
    )
    rows = session.execute(
        select(BackchannelSession, Application)
        .join(Application, Application.id == BackchannelSession.application_id)
        .where(BackchannelSession.id.in_(claim.scalars().all()))
        .order_by(BackchannelSession.id)
    )
    return [
        EndedSession(
            id=row.id,
            application_id=application.id,
            application_uid=application.uid,
            user_id=row.user_id,
            sid=row.sid,
            tries=row.tries,
        )
        for row, application in rows
    ]


def renew_logout_claim(
    ended_session: EndedSession, *, session: Session, now: datetime
) -> str | None:
    """Renew a claim before an attempt, and return the current URL of the application.

    The URL is empty if the application has removed it. Return None if the claim was lost.
    """
    renewed = (
        build_bulk_update(BackchannelSession)
        .where(
            BackchannelSession.id == ended_session.id,
            # Each claim increases the number of attempts.
            BackchannelSession.tries == ended_session.tries,
        )
        .values(due_at=now + LOGOUT_QUEUE.claim_lifetime)
    )
    if session.scalar(renewed.returning(BackchannelSession.id)) is None:
        return None
    url = select(Application.backchannel_logout_uri)
    return session.scalar(url.where(Application.id == ended_session.application_id)) or ""


def create_logout_token(
    ended_session: EndedSession, *, issuer: str, session: Session, keyring: Keyring, now: datetime
) -> str:
    """Return a signed logout token (section 2.4)."""
    key = get_or_create_signing_key(session=session, keyring=keyring, now=now)
    claims = {
        "iss": issuer,
        "sub": get_subject(ended_session.user_id),
        "aud": ended_session.application_uid,
        "iat": int(now.timestamp()),
        "exp": int((now + _TOKEN_LIFETIME).timestamp()),
        "jti": generate_random_hex(16),
        "events": {_LOGOUT_EVENT: {}},
        "sid": ended_session.sid,
    }
    return jwt.encode({"typ": "logout+jwt", "alg": SIGNING_ALGORITHM, "kid": key.kid}, claims, key)


def delete_ended_session(ended_session: EndedSession, *, session: Session) -> None:
    """Delete a session whose notification was delivered or is no longer needed."""
    session.execute(delete(BackchannelSession).where(BackchannelSession.id == ended_session.id))


def schedule_logout_retry(ended_session: EndedSession, *, session: Session, now: datetime) -> bool:
    """Schedule another attempt, or delete the session after the last attempt.

    Return whether another attempt is scheduled.
    """
    if ended_session.tries >= _MAX_ATTEMPTS:
        delete_ended_session(ended_session, session=session)
        return False
    due_at = now + LOGOUT_QUEUE.backoff.compute_pause(ended_session.tries)
    # Other notifications to the same application wait at least as long.
    session.execute(
        build_bulk_update(BackchannelSession)
        .where(
            BackchannelSession.application_id == ended_session.application_id,
            _IS_ENDED,
            or_(BackchannelSession.id == ended_session.id, BackchannelSession.due_at < due_at),
        )
        .values(due_at=due_at)
    )
    return True


#: Time at which a sign-in ended. Sign-ins that ended before an upgrade have no such time.
_ENDED_AT = func.coalesce(BackchannelSession.ended_at, BackchannelSession.due_at)
_HAS_FAILED = BackchannelSession.tries > 0


def get_logout_queue_state(*, session: Session) -> QueueState:
    """Return the state of the queue of notifications, which wait since their sign-ins ended."""
    return read_queue_state(_IS_ENDED, since=_ENDED_AT, has_failed=_HAS_FAILED, session=session)


def list_failing_applications(*, session: Session) -> Sequence[FailingDestination]:
    """Return the applications that did not accept a notification, longest failing first."""
    oldest = func.min(_ENDED_AT).label("oldest")
    rows = session.execute(
        select(
            Application.id,
            Application.name,
            func.count().label("waiting"),
            func.max(BackchannelSession.tries).label("tries"),
            oldest,
            func.min(BackchannelSession.due_at).label("due_at"),
        )
        .join(BackchannelSession, BackchannelSession.application_id == Application.id)
        .where(_IS_ENDED)
        .group_by(Application.id, Application.name)
        .having(func.max(BackchannelSession.tries) > 0)
        .order_by(oldest)
    )
    return [
        FailingDestination(
            id=str(row.id),
            name=row.name,
            waiting=row.waiting,
            attempts=row.tries,
            failing_since=row.oldest,
            next_attempt_at=row.due_at,
        )
        for row in rows
    ]


def retry_logout_notifications(application_id: int, *, session: Session, now: datetime) -> None:
    """Make the notifications to an application due.

    The attempt does not count, so that administrators cannot use up the attempts.
    """
    tries = BackchannelSession.tries
    LOGOUT_QUEUE.retry_now(
        BackchannelSession.application_id == application_id,
        session=session,
        now=now,
        tries=case((tries > 1, tries - 1), else_=tries),
    )
