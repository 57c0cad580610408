"""Notices when an integration that worked rejects every delivery, and notifies its maintainers.

The delivery log is the source: rejected requests write nothing more for this, and of a flood the
log keeps samples with counts. The worker looks once a minute.

=========================  ========================================================================
the log of an integration  what happens
=========================  ========================================================================
three rejections over ten  `rejected_since` is set to the first of them, and its maintainers get one
minutes, no acceptance     email. The email names the last reason.
further rejections         Nothing.
an acceptance              `rejected_since` is cleared. Another three are a new episode.
turned off                 As an acceptance: 403 for what is turned off is no rejection.
=========================  ========================================================================

Tests of users count as neither.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import func, or_, select, text
from sqlalchemy.orm import Session

from domain.access.features import AccessLevel
from domain.alerts.deliveries import REFUSED_FROM
from domain.alerts.formats.registry import FORMATS
from domain.alerts.integrations.set_up import LOOKED_AT, advice_for, sender_of
from domain.core.clock import written
from domain.core.database.rows import update_rows
from domain.delivery.mail.outbox import NewMessage, Sign, queue_messages
from domain.projects.bots import Maintainer, maintainers_of
from models import Alert, Delivery, Integration, Project

_FEWEST = 3
_SHORTEST = timedelta(minutes=10)
_TURNED_OFF = 403
#: As literals: with a parameter Postgres would not use the index of refused deliveries.
_IS_REFUSED = text(f"deliveries.status_code >= {REFUSED_FROM}")
_COUNTS = Delivery.status_code != _TURNED_OFF
_TYPES = tuple(each.name for each in FORMATS)


class _Watched(NamedTuple):
    """An integration with what its log has last."""

    id: int
    project_id: int
    name: str
    is_open: bool
    rejected_since: datetime | None
    key_was_used: bool
    #: Ids of deliveries.
    last_rejected: int | None
    last_accepted: int | None


class _Run(NamedTuple):
    """The rejections of an integration since its last acceptance."""

    since: datetime
    until: datetime
    requests: int

    @property
    def is_long(self) -> bool:
        return self.requests >= _FEWEST and self.until - self.since >= _SHORTEST


def note_rejections(sign: Sign | None, *, session: Session, now: datetime) -> int:
    """Store which integrations only reject deliveries; return how many are new.

    Their maintainers get an email, unless `sign` is None because no mail can be sent.
    """
    return sum(
        _note(watched, sign, session=session, now=now) for watched in _watched(session=session)
    )


def count_rejecting(*, session: Session) -> int:
    """Return how many integrations only reject deliveries."""
    rejecting = select(func.count()).where(Integration.rejected_since.is_not(None))
    return session.scalar(rejecting) or 0


def _last(*conditions: Any) -> Any:
    return (
        select(func.max(Delivery.id))
        .where(Delivery.integration_id == Integration.id, Delivery.is_test.is_(False), *conditions)
        .correlate(Integration)
        .scalar_subquery()
    )


def _watched(*, session: Session) -> Iterator[_Watched]:
    is_open = (
        Integration.active.is_(True)
        & Project.archived_at.is_(None)
        & Project.deleted_at.is_(None)
        & (Project.monitor_access_level != AccessLevel.DISABLED.value)
    )
    used = or_(
        Integration.key_last_used_at.is_not(None),
        Integration.previous_key_last_used_at.is_not(None),
    )
    rejected = _last(_IS_REFUSED, _COUNTS)
    rows = session.execute(
        select(
            Integration.id,
            Integration.project_id,
            Integration.name,
            is_open.label("is_open"),
            Integration.rejected_since,
            used.label("key_was_used"),
            rejected.label("last_rejected"),
            _last(Delivery.status_code < REFUSED_FROM).label("last_accepted"),
        )
        .join(Project, Project.id == Integration.project_id)
        .where(
            Integration.type.in_(_TYPES),
            or_(is_open & rejected.is_not(None), Integration.rejected_since.is_not(None)),
        )
        .order_by(Integration.id)
    ).all()
    return (_Watched._make(row) for row in rows)


def _note(watched: _Watched, sign: Sign | None, *, session: Session, now: datetime) -> bool:
    accepted = watched.last_accepted
    accepted_at = None
    if accepted is not None:
        accepted_at = session.scalar(select(Delivery.received_at).where(Delivery.id == accepted))
    since = watched.rejected_since
    is_over = since is not None and accepted_at is not None and accepted_at >= since
    if not watched.is_open:
        _set(watched, None, session=session)
        return False
    run = _run(watched, session=session)
    if run is None or not run.is_long:
        if is_over:
            _set(watched, None, session=session)
        return False
    if (since is not None and not is_over) or not _has_worked(watched, session=session):
        return False
    if not _set(watched, run.since, session=session):
        return False
    if sign is not None:
        messages = _messages(watched, run, sign, session=session, now=now)
        queue_messages(list(messages), session=session, keyring=sign.keyring, now=now)
    return True


def _run(watched: _Watched, *, session: Session) -> _Run | None:
    if watched.last_rejected is None or watched.last_rejected < (watched.last_accepted or 0):
        return None
    row = session.execute(
        select(
            func.min(Delivery.received_at),
            func.max(Delivery.received_at),
            func.coalesce(func.sum(1 + Delivery.skipped), 0),
        ).where(
            Delivery.integration_id == watched.id,
            _IS_REFUSED,
            _COUNTS,
            Delivery.is_test.is_(False),
            Delivery.id > (watched.last_accepted or 0),
        )
    ).one()
    return _Run(*row) if row[2] else None


def _has_worked(watched: _Watched, *, session: Session) -> bool:
    """Return whether the integration has accepted something, although its log may be pruned."""
    if watched.last_accepted is not None or watched.key_was_used:
        return True
    # The delivery of an alert is deleted later than others, and only tests are known by it.
    alert = (
        select(Alert.id)
        .outerjoin(Delivery, Delivery.id == Alert.delivery_id)
        .where(Alert.integration_id == watched.id, Delivery.is_test.is_not(True))
        .limit(1)
    )
    return session.scalar(alert) is not None


def _set(watched: _Watched, since: datetime | None, *, session: Session) -> bool:
    """Store since when all is rejected; return whether another worker has not done so before."""
    changed = session.scalar(
        update_rows(Integration)
        .where(
            Integration.id == watched.id,
            Integration.rejected_since.is_not_distinct_from(watched.rejected_since),
        )
        .values(rejected_since=since)
        .returning(Integration.id)
    )
    return changed is not None


def _messages(
    watched: _Watched, run: _Run, sign: Sign, *, session: Session, now: datetime
) -> Iterator[NewMessage]:
    last = session.execute(
        select(
            Delivery.status_code,
            Delivery.reason,
            Delivery.user_agent,
            func.substr(Delivery.body, 1, LOOKED_AT).label("start"),
        ).where(Delivery.id == watched.last_rejected)
    ).one()
    advice = advice_for(last.status_code, sender_of(last.user_agent, last.start))
    path, people = maintainers_of(None, watched.project_id, session=session, today=now.date())
    page = f"{sign.base_url}/{path}/-/settings/integrations/{watched.id}/deliveries"
    for person in people:
        yield NewMessage(
            key=f"integration {watched.id} rejects since {written(run.since)}, to {person.id}",
            recipient=person.email,
            subject=f"Alerts to “{watched.name}” of {path} are rejected",
            text=_text(watched, run, person)
            + f"The last request got status {last.status_code}: {last.reason or 'no reason'}\n"
            + f"{advice}\n\nThe deliveries, and a button that processes them again:\n{page}\n\n"
            + f"-- \n{sign.instance_name}, {sign.base_url}\n"
            + f"You receive this message because you are a maintainer of {path}.\n",
        )


def _text(watched: _Watched, run: _Run, person: Maintainer) -> str:
    return (
        f"Hello {person.name},\n\n"
        f"the integration “{watched.name}” used to receive alerts. Since {written(run.since)} all "
        f"{run.requests:,} requests to it were rejected, so no alert opens and nobody is paged.\n\n"
    )
