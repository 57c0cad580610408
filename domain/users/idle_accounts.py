"""Accounts of people that nobody uses: they are deactivated, a week after that was noticed.

Their owner is told when it is noticed. Who is on call, or is named in an escalation policy, may
answer pages without signing in: such accounts are never idle. Neither is that of the administrator
who signed in last, so that one is always left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, not_, or_, select, update
from sqlalchemy.orm import Session

from domain.accounts.administration import deactivate_idle
from domain.accounts.email_addresses import Letterhead
from domain.accounts.users import ACTIVE, HUMAN
from domain.audit.events import Event, EventKind, EventSource, store_event
from domain.escalations.steps import TargetKind
from domain.mail.outbox import queue_messages
from models import (
    AccessToken,
    CallCount,
    EscalationPolicy,
    OnCallOverride,
    OnCallRotation,
    OnCallSwap,
    OnCallTurn,
    PersonalAccessToken,
    SignIn,
    User,
)

#: Between the message and the deactivation.
NOTICE = timedelta(days=7)
_SLICE = 200
_LAST_SEEN = func.coalesce(User.last_sign_in_at, User.created_at)


@dataclass(frozen=True, kw_only=True)
class IdleAccounts:
    """The accounts that are idle for a time, and the messages to their owners."""

    days: int
    head: Letterhead

    def settle(
        self, *, session: Session, now: datetime, between: Callable[[], None]
    ) -> dict[str, int]:
        """Notice and deactivate idle accounts; return how many of each.

        `between` is called after each slice; the caller commits there, so that locks are short.
        """
        named = _named_in_policies(session)
        is_idle = _is_idle(now - timedelta(days=self.days), now, named)
        is_nearly_idle = _is_idle(now - timedelta(days=self.days) + NOTICE, now, named)
        used_again = User.idle_noticed_at.is_not(None) & not_(is_nearly_idle)
        session.execute(_changed(used_again, idle_noticed_at=None))
        between()
        deactivated = self._deactivate(
            is_idle & (User.idle_noticed_at <= now - NOTICE), session, now, between
        )
        is_new = is_nearly_idle & User.idle_noticed_at.is_(None)
        return {"deactivated": deactivated, "noticed": self._notice(is_new, session, now, between)}

    def _deactivate(
        self,
        condition: ColumnElement[bool],
        session: Session,
        now: datetime,
        between: Callable[[], None],
    ) -> int:
        done, ids = 0, select(User.id).where(condition).order_by(User.id)
        for user_id in session.scalars(ids).all():
            # Again in its own transaction: somebody may have come back meanwhile.
            still = session.scalar(ids.where(User.id == user_id).with_for_update(key_share=True))
            if still is not None and deactivate_idle(user_id, session=session):
                event = Event(
                    kind=EventKind.USER_DEACTIVATED,
                    user_id=user_id,
                    subject=session.get_one(User, user_id).username,
                    details={"idle_days": self.days},
                )
                store_event(event, EventSource(), session=session, now=now)
                done += 1
            between()
        return done

    def _notice(
        self,
        condition: ColumnElement[bool],
        session: Session,
        now: datetime,
        between: Callable[[], None],
    ) -> int:
        total = 0
        while True:
            some = session.scalars(select(User).where(condition).limit(_SLICE)).all()
            if not some:
                return total
            ids = [each.id for each in some]
            if self.head.has_mail_server:
                messages = [self._message(each, now) for each in some]
                queue_messages(messages, session=session, now=now)
            session.execute(_changed(User.id.in_(ids), idle_noticed_at=now))
            between()
            total += len(ids)

    def _message(self, user: User, now: datetime) -> Any:
        head = self.head
        return head.letter(
            f"idle user {user.id}, noticed at {now.isoformat()}",
            user.email,
            f"Your account at {head.instance_name} will be deactivated",
            f"Nobody has used your account @{user.username} for a long time. It will be "
            f"deactivated on {(now + NOTICE).date()}: its access tokens will not work any more. "
            "Sign in before then to keep it active:\n"
            f"{head.base_url}/users/sign_in\n\n"
            "You can sign in later, too: that activates the account again.",
        )


def _changed(condition: ColumnElement[bool], **values: Any) -> Any:
    return update(User).where(condition).values(values).execution_options(synchronize_session=False)


def _is_idle(before: datetime, now: datetime, named: frozenset[int]) -> ColumnElement[bool]:
    """Return the condition of active accounts of people that nobody has used since a time."""
    last_administrator = (
        select(User.id)
        .where(User.is_admin, User.state == ACTIVE, User.kind == HUMAN)
        .order_by(_LAST_SEEN.desc(), User.id.desc())
        .limit(1)
        .correlate(None)
    )
    uses = (
        exists().where(SignIn.user_id == User.id, SignIn.expires_at > now),
        exists().where(
            PersonalAccessToken.user_id == User.id, PersonalAccessToken.last_used_at >= before
        ),
        exists().where(
            AccessToken.user_id == User.id,
            or_(AccessToken.created_at >= before, AccessToken.last_used_at >= before),
        ),
        # Of tokens that are removed since.
        exists().where(CallCount.user_id == User.id, CallCount.day >= before.date()),
        exists().where(
            OnCallTurn.user_id == User.id,
            OnCallRotation.id == OnCallTurn.rotation_id,
            or_(OnCallRotation.valid_until.is_(None), OnCallRotation.valid_until > now),
        ),
        exists().where(OnCallOverride.user_id == User.id, OnCallOverride.ends_at > now),
        exists().where(
            or_(OnCallSwap.user_id == User.id, OnCallSwap.other_user_id == User.id),
            OnCallSwap.over_at > now,
        ),
    )
    return and_(
        User.kind == HUMAN,
        User.state == ACTIVE,
        before > _LAST_SEEN,
        User.id.not_in(named),
        User.id.not_in(last_administrator),
        *(not_(each) for each in uses),
    )


def _named_in_policies(session: Session) -> frozenset[int]:
    return frozenset(
        target_id
        for steps in session.scalars(select(EscalationPolicy.steps))
        for step in steps
        for kind, target_id in step["targets"]
        if kind == TargetKind.USER
    )
