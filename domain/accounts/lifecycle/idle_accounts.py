"""Deactivates idle accounts of people, a week after their owners were notified.

Users who are on call or in escalation policies may respond to notifications without signing in, so
their accounts are never idle. The administrator with the latest sign-in is never idle either, so
that one administrator always remains.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, exists, func, not_, or_, select
from sqlalchemy.orm import Session

from domain.accounts.administration import deactivate_idle_account
from domain.accounts.email_addresses import AccountMessageBuilder
from domain.accounts.users import IS_ACTIVE_HUMAN
from domain.audit.events import Event, EventKind, EventSource, store_event
from domain.core.database.bulk_statements import build_bulk_update
from domain.delivery.mail.outbox import queue_emails
from domain.paging.escalations.policy_steps import TargetKind
from models import (
    AccessToken,
    CallCount,
    EscalationPolicy,
    IncidentRuleResponder,
    OnCallOverride,
    OnCallRotation,
    OnCallSwap,
    OnCallTurn,
    PersonalAccessToken,
    SignIn,
    User,
)

#: Time between the notice and the deactivation.
IDLE_NOTICE_PERIOD = timedelta(days=7)
_LAST_SEEN_AT = func.coalesce(User.last_sign_in_at, User.created_at)


@dataclass(frozen=True, kw_only=True)
class IdleAccountProcessor:
    """A processor that notifies owners of idle accounts, and deactivates the accounts later."""

    days: int
    head: AccountMessageBuilder
    session: Session
    now: datetime
    #: Function that is called after each account. It commits, so that locks are held only briefly.
    between: Callable[[], None]

    def notify_and_deactivate(self) -> dict[str, int]:
        """Notify owners of idle accounts, and deactivate accounts whose owners were notified.

        Each account is processed in its own transaction. Return the number of deactivated accounts
        and the number of notices.
        """
        before, named = self.now - timedelta(days=self.days), _find_policy_target_ids(self.session)
        is_idle = _is_idle(before, self.now, named)
        is_nearly_idle = _is_idle(before + IDLE_NOTICE_PERIOD, self.now, named)
        is_over = User.idle_noticed_at <= self.now - IDLE_NOTICE_PERIOD
        is_new, used_again = User.idle_noticed_at.is_(None), not_(is_nearly_idle)
        forget = (
            build_bulk_update(User).where(used_again, not_(is_new)).values(idle_noticed_at=None)
        )
        self.session.execute(forget)
        self.between()
        return {
            "deactivated": self._process_matching_users(is_idle & is_over, self._deactivate_user),
            "noticed": self._process_matching_users(
                is_nearly_idle & is_new, self._notify_idle_user
            ),
        }

    def _process_matching_users(
        self, condition: ColumnElement[bool], process_user: Callable[[User], bool]
    ) -> int:
        done, found = 0, select(User).where(condition).order_by(User.id)
        for user_id in self.session.scalars(found.with_only_columns(User.id)).all():
            # The account is checked again, because its owner may have signed in in the meantime.
            still = found.where(User.id == user_id).with_for_update(key_share=True)
            user = self.session.scalar(still)
            done += user is not None and process_user(user)
            self.between()
        return done

    def _deactivate_user(self, user: User) -> bool:
        if not deactivate_idle_account(user.id, session=self.session):
            return False
        event = Event(
            kind=EventKind.USER_DEACTIVATED,
            user_id=user.id,
            subject=user.username,
            details={"idle_days": self.days},
        )
        store_event(event, EventSource(), session=self.session, now=self.now)
        return True

    def _notify_idle_user(self, user: User) -> bool:
        user.idle_noticed_at, head = self.now, self.head
        message = head.build_address_message(
            f"idle user {user.id}, noticed at {self.now.isoformat()}",
            user.email,
            f"Your account at {head.instance_name} will be deactivated",
            f"Your account @{user.username} has not been used for a long time. It will be "
            f"deactivated on {(self.now + IDLE_NOTICE_PERIOD).date()}, and its access tokens will "
            "stop "
            "working. To keep it active, sign in before then:\n"
            f"{head.base_url}/users/sign_in\n\n"
            "If you sign in later, the account is activated again.",
        )
        if head.has_mail_server:
            queue_emails((message,), session=self.session, keyring=head.keyring, now=self.now)
        return True


def _is_idle(before: datetime, now: datetime, named: frozenset[int]) -> ColumnElement[bool]:
    """Return an SQL condition that is true for idle accounts.

    An idle account is active, belongs to a person, and has not been used since `before`.
    """
    last_administrator = (
        select(User.id)
        .where(User.is_admin, IS_ACTIVE_HUMAN)
        .order_by(_LAST_SEEN_AT.desc(), User.id.desc())
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
        # API calls are counted separately, since their tokens may have been deleted.
        exists().where(CallCount.user_id == User.id, CallCount.day >= before.date()),
        exists().where(
            OnCallTurn.user_id == User.id,
            OnCallRotation.id == OnCallTurn.rotation_id,
            or_(OnCallRotation.valid_until.is_(None), OnCallRotation.valid_until > now),
        ),
        exists().where(IncidentRuleResponder.user_id == User.id),
        exists().where(OnCallOverride.user_id == User.id, OnCallOverride.ends_at > now),
        exists().where(
            or_(OnCallSwap.user_id == User.id, OnCallSwap.other_user_id == User.id),
            OnCallSwap.over_at > now,
        ),
    )
    return and_(
        IS_ACTIVE_HUMAN,
        before > _LAST_SEEN_AT,
        User.id.not_in(named),
        User.id.not_in(last_administrator),
        *(not_(each) for each in uses),
    )


def _find_policy_target_ids(session: Session) -> frozenset[int]:
    return frozenset(
        target_id
        for steps in session.scalars(select(EscalationPolicy.steps))
        for step in steps
        for kind, target_id in step["targets"]
        if kind == TargetKind.USER
    )
