"""Detects working integrations that start to reject every delivery, and notifies maintainers.

The worker checks the delivery log once a minute. Rejected requests store nothing else for this
purpose. During a flood of requests, the log contains samples with counts.

=========================  ========================================================================
log of an integration      result
=========================  ========================================================================
three rejections over at   `rejected_since` is set to the time of the first rejection. Maintainers
least ten minutes, and no  get one email, which contains the last reason.
acceptance
further rejections         Nothing happens.
an acceptance              `rejected_since` is cleared. Three more rejections start a new episode.
integration turned off     Same as an acceptance. A 403 response does not count as a rejection.
=========================  ========================================================================

Test alerts from users count neither as rejections nor as acceptances.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import func, or_, select, text
from sqlalchemy.orm import Session

from domain.access.features import AccessLevel
from domain.alerts.deliveries import MIN_REJECTED_STATUS
from domain.alerts.formats.registry import FORMATS
from domain.alerts.integrations.setup_progress import (
    SEARCHED_BODY_BYTES,
    get_rejection_advice,
    recognize_sender,
)
from domain.core.clock import format_api_time
from domain.core.database.bulk_statements import build_bulk_update
from domain.delivery.mail.outbox import MessageSettings, NewEmail, queue_emails
from domain.projects.bots import Maintainer, find_maintainers
from models import Alert, Delivery, Integration, Project

#: Minimum number of rejections for an email or a warning.
MIN_REJECTIONS = 3
_MIN_DURATION = timedelta(minutes=10)
#: Status code of responses to deliveries for an integration that is turned off.
TURNED_OFF_STATUS = 403
#: SQL condition with a literal, since Postgres would not use the index on rejected deliveries with
#: a parameter.
_IS_REJECTED = text(f"deliveries.status_code >= {MIN_REJECTED_STATUS}")
_IS_COUNTED = Delivery.status_code != TURNED_OFF_STATUS
_RECEIVING_TYPES = tuple(each.name for each in FORMATS)


class _WatchedIntegration(NamedTuple):
    """An integration, with the IDs of its last accepted and last rejected deliveries."""

    id: int
    project_id: int
    name: str
    is_open: bool
    rejected_since: datetime | None
    key_was_used: bool
    #: IDs of the last rejected and the last accepted delivery.
    last_rejected: int | None
    last_accepted: int | None


class _RejectionRun(NamedTuple):
    """The rejections of an integration since its last acceptance."""

    since: datetime
    until: datetime
    requests: int

    @property
    def is_long(self) -> bool:
        return self.requests >= MIN_REJECTIONS and self.until - self.since >= _MIN_DURATION


def update_rejected_since(sign: MessageSettings | None, *, session: Session, now: datetime) -> int:
    """Record the integrations that reject all deliveries, and return the number of new records.

    Maintainers of the newly recorded integrations receive an email, unless `sign` is None because
    no email can be sent.
    """
    return sum(
        _update_integration(watched, sign, session=session, now=now)
        for watched in _find_watched_integrations(session=session)
    )


def count_rejecting_integrations(*, session: Session) -> int:
    """Return the number of integrations that reject all deliveries."""
    rejecting = select(func.count()).where(Integration.rejected_since.is_not(None))
    return session.scalar(rejecting) or 0


def _build_last_delivery_query(*conditions: Any) -> Any:
    return (
        select(func.max(Delivery.id))
        .where(Delivery.integration_id == Integration.id, Delivery.is_test.is_(False), *conditions)
        .correlate(Integration)
        .scalar_subquery()
    )


def _find_watched_integrations(*, session: Session) -> Iterator[_WatchedIntegration]:
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
    rejected = _build_last_delivery_query(_IS_REJECTED, _IS_COUNTED)
    rows = session.execute(
        select(
            Integration.id,
            Integration.project_id,
            Integration.name,
            is_open.label("is_open"),
            Integration.rejected_since,
            used.label("key_was_used"),
            rejected.label("last_rejected"),
            _build_last_delivery_query(Delivery.status_code < MIN_REJECTED_STATUS).label(
                "last_accepted"
            ),
        )
        .join(Project, Project.id == Integration.project_id)
        .where(
            Integration.type.in_(_RECEIVING_TYPES),
            or_(is_open & rejected.is_not(None), Integration.rejected_since.is_not(None)),
        )
        .order_by(Integration.id)
    ).all()
    return (_WatchedIntegration._make(row) for row in rows)


def _update_integration(
    watched: _WatchedIntegration, sign: MessageSettings | None, *, session: Session, now: datetime
) -> bool:
    accepted = watched.last_accepted
    accepted_at = None
    if accepted is not None:
        accepted_at = session.scalar(select(Delivery.received_at).where(Delivery.id == accepted))
    since = watched.rejected_since
    is_over = since is not None and accepted_at is not None and accepted_at >= since
    if not watched.is_open:
        _set_rejected_since(watched, None, session=session)
        return False
    run = _find_rejection_run(watched, session=session)
    if run is None or not run.is_long:
        if is_over:
            _set_rejected_since(watched, None, session=session)
        return False
    if (since is not None and not is_over) or not _has_ever_accepted(watched, session=session):
        return False
    if not _set_rejected_since(watched, run.since, session=session):
        return False
    if sign is not None:
        messages = _build_messages(watched, run, sign, session=session, now=now)
        queue_emails(list(messages), session=session, keyring=sign.keyring, now=now)
    return True


def _find_rejection_run(watched: _WatchedIntegration, *, session: Session) -> _RejectionRun | None:
    if watched.last_rejected is None or watched.last_rejected < (watched.last_accepted or 0):
        return None
    row = session.execute(
        select(
            func.min(Delivery.received_at),
            func.max(Delivery.received_at),
            func.coalesce(func.sum(1 + Delivery.skipped), 0),
        ).where(
            Delivery.integration_id == watched.id,
            _IS_REJECTED,
            _IS_COUNTED,
            Delivery.is_test.is_(False),
            Delivery.id > (watched.last_accepted or 0),
        )
    ).one()
    return _RejectionRun(*row) if row[2] else None


def _has_ever_accepted(watched: _WatchedIntegration, *, session: Session) -> bool:
    """Return whether the integration has ever accepted a delivery, even if its log was pruned."""
    if watched.last_accepted is not None or watched.key_was_used:
        return True
    # Deliveries that alerts refer to are stored longer than other deliveries, and show whether an
    # alert is a test.
    alert = (
        select(Alert.id)
        .outerjoin(Delivery, Delivery.id == Alert.delivery_id)
        .where(Alert.integration_id == watched.id, Delivery.is_test.is_not(True))
        .limit(1)
    )
    return session.scalar(alert) is not None


def _set_rejected_since(
    watched: _WatchedIntegration, since: datetime | None, *, session: Session
) -> bool:
    """Store the time since which all deliveries have been rejected.

    Return False if another worker has already stored the time.
    """
    changed = session.scalar(
        build_bulk_update(Integration)
        .where(
            Integration.id == watched.id,
            Integration.rejected_since.is_not_distinct_from(watched.rejected_since),
        )
        .values(rejected_since=since)
        .returning(Integration.id)
    )
    return changed is not None


def _build_messages(
    watched: _WatchedIntegration,
    run: _RejectionRun,
    sign: MessageSettings,
    *,
    session: Session,
    now: datetime,
) -> Iterator[NewEmail]:
    last = session.execute(
        select(
            Delivery.status_code,
            Delivery.reason,
            Delivery.user_agent,
            func.substr(Delivery.body, 1, SEARCHED_BODY_BYTES).label("start"),
        ).where(Delivery.id == watched.last_rejected)
    ).one()
    advice = get_rejection_advice(last.status_code, recognize_sender(last.user_agent, last.start))
    path, people = find_maintainers(None, watched.project_id, session=session, today=now.date())
    page = f"{sign.base_url}/{path}/-/settings/integrations/{watched.id}/deliveries"
    for person in people:
        yield NewEmail(
            key=(
                f"integration {watched.id} rejects since {format_api_time(run.since)}, to "
                f"{person.id}"
            ),
            recipient=person.email,
            subject=f"Alerts for “{watched.name}” in {path} are rejected",
            text=_format_introduction(watched, run, person)
            + f"The last request was rejected with status {last.status_code}: "
            + f"{last.reason or 'no reason'}\n"
            + f"{advice}\n\nView the deliveries, and process them again:\n{page}\n\n"
            + f"-- \n{sign.instance_name}, {sign.base_url}\n"
            + f"You receive this message because you are a maintainer of {path}.\n",
        )


def _format_introduction(
    watched: _WatchedIntegration, run: _RejectionRun, person: Maintainer
) -> str:
    return (
        f"Hello {person.name},\n\n"
        f"The integration “{watched.name}” has stopped accepting alerts. Since "
        f"{format_api_time(run.since)}, all {run.requests:,} requests to it have been rejected, "
        "so no "
        "alerts "
        "are opened and nobody is paged.\n\n"
    )
