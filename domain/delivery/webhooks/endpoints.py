"""Webhook endpoints of projects, the log of their deliveries, and notices about failures.

Deliveries about the same alert or incident are sent in order: while a delivery waits for a retry,
later deliveries wait as well. Deliveries about other alerts and incidents continue.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, literal_column, select
from sqlalchemy.orm import Session, defer

from domain.access.actor import UnitOfWork
from domain.access.authorizations import has_live_access
from domain.alerts.change_feed import Follower, add_follower, remove_follower
from domain.alerts.matching.conditions import parse_conditions
from domain.audit.events import Event, EventKind, EventSource, NamespaceIds, store_event
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.database.pagination import KeysetPage, KeysetRange, fetch_page
from domain.core.due_time_sql import Moment
from domain.core.errors import ConflictError, NotFoundError
from domain.core.keyring import Keyring
from domain.core.types.base import get_column_values
from domain.delivery.destination_actions import DestinationNotice, DestinationNoticeSettings
from domain.delivery.mail.outbox import queue_emails
from domain.delivery.outgoing.attempts import ClaimedDelivery, DeliveryAttempt, DeliveryFailure
from domain.delivery.outgoing.destinations import (
    CommitCallback,
    DestinationManager,
    DestinationQueue,
    DestinationState,
    FailedAttempt,
)
from domain.delivery.outgoing.signing import OutgoingMessage, build_unsigned_headers
from domain.delivery.outgoing.urls import parse_outgoing_url
from domain.delivery.webhooks.queueing import build_delivery_row
from domain.delivery.webhooks.types import (
    TEST_EVENT,
    DeliveryState,
    EndpointDetails,
    PauseReason,
    Webhook,
    WebhookDelivery,
    WebhookDeliveryDetail,
    is_subscribed_to_alerts,
    normalize_event_names,
)
from domain.projects.bots import find_maintainers
from models import Project, WebhookEndpoint
from models import WebhookDelivery as DeliveryRow

#: Maximum number of endpoints per project. Each endpoint adds a row for every event.
MAX_ENDPOINTS = 20
#: Time after which a failed delivery is given up.
MAX_DELIVERY_AGE = timedelta(days=3)
_GONE_STATUS = 410
_RECENT_DELIVERY_COUNT = 5
#: Maximum numbers of waiting and finished deliveries per endpoint. Above these limits, the oldest
#: waiting deliveries are given up, and the oldest finished deliveries are removed.
MAX_WAITING_DELIVERIES, MAX_FINISHED_DELIVERIES = 10_000, 20_000
_BATCH_SIZE = 500
_EXPIRED_REASON = "The delivery waited for three days."
_ARCHIVED_REASON = "Canceled: the project is archived."
_DELETED_REASON = "Canceled: the project is being deleted."
_SURPLUS_REASON = f"More than {MAX_WAITING_DELIVERIES:,} deliveries were waiting."


class WebhookManager(DestinationManager[WebhookEndpoint, Webhook, EndpointDetails]):
    """The behavior that is specific to webhook endpoints."""

    noun = message_noun = "webhook"
    max_destinations = MAX_ENDPOINTS
    too_many = f"A project can have at most {MAX_ENDPOINTS} webhooks. Delete a webhook first."
    not_found = "Webhook not found in this project."
    #: Number of failures after which the delay of an endpoint stops growing, so that a recovered
    #: endpoint does not wait for hours. The delays of a single delivery continue to grow.
    max_counted_failures = 12
    time_slice_seconds = 20.0
    row = WebhookEndpoint
    owner_column = "project_id"
    queue = DestinationQueue(
        entry=DeliveryRow,
        destination=DeliveryRow.endpoint_id,
        queued_at=DeliveryRow.queued_at,
        is_waiting=DeliveryRow.state == literal_column(f"'{DeliveryState.WAITING}'"),
    )

    def build_view(self, row: WebhookEndpoint, *more: Any, **shared: Any) -> Webhook:
        """Return the API resource for the row of an endpoint."""
        del more
        conditions = parse_conditions(row.conditions).to_json()
        own = {"active": row.paused_at is None, **conditions}
        return Webhook.model_validate(get_column_values(row, Webhook) | shared | own)

    def build_detail_columns(self, details: EndpointDetails) -> Mapping[str, object]:
        """Return the columns that store the events and conditions.

        Raise InvalidError for an invalid value.
        """
        return {
            "events": [*normalize_event_names(details.events)],
            "conditions": details.conditions.to_json(),
        }

    def build_sendable_condition(self, now: Moment) -> ColumnElement[bool]:
        """Return the condition for deliveries that are due."""
        return and_(self.queue.is_waiting, DeliveryRow.next_try_at <= now)

    def lock_owner(self, owner: int | None, session: Session) -> None:
        """Serialize changes to a project's endpoints."""
        project = select(Project.id).where(Project.id == owner)
        # The weaker lock allows alerts for the project to be stored in the meantime.
        session.execute(project.with_for_update(key_share=True))

    def update_alert_subscription(self, owner: int | None, session: Session) -> None:
        """Start or stop queuing the project's alert changes for webhooks.

        Alert changes are queued if and only if an active endpoint receives alert events.
        """
        mine = WebhookEndpoint.project_id == owner, WebhookEndpoint.paused_at.is_(None)
        chosen = session.scalars(select(WebhookEndpoint.events).where(*mine))
        change = add_follower if any(map(is_subscribed_to_alerts, chosen)) else remove_follower
        change(owner or 0, Follower.WEBHOOKS, session=session)

    def mark_paused(self, row: WebhookEndpoint, now: datetime) -> None:
        """Mark an endpoint as paused by a maintainer, so that no more messages are queued."""
        row.paused_at, row.pause_reason = now, PauseReason.USER.value

    def mark_resumed(self, row: WebhookEndpoint) -> None:
        """Mark an endpoint as not paused."""
        if row.paused_at is not None:
            # Restart the count of days without a successful delivery.
            row.failing_since, row.tries = None, 0
        if row.pause_reason == PauseReason.APPLICATION.value:
            # A user has resumed the webhook, so the webhook no longer depends on the application's
            # authorization.
            row.authorization_id = None
        row.pause_reason = None
        super().mark_resumed(row)

    def get_next_message(
        self, row: WebhookEndpoint, *, session: Session, now: datetime
    ) -> tuple[int, OutgoingMessage] | None:
        """Return the delivery that has been due for the longest time.

        Return None if no delivery is due. Earlier deliveries about the same alert are sent first.
        Deliveries for archived or deleted projects are canceled. The endpoint is paused if the
        application that set its URL has lost access.
        """
        mine = DeliveryRow.endpoint_id == row.id
        if (reason := self._find_cancellation_reason(row, session)) is not None:
            session.execute(
                build_bulk_update(DeliveryRow)
                .where(mine, self.queue.is_waiting)
                .values(state=DeliveryState.FAILED.value, next_try_at=None, error=reason)
            )
            return None
        is_it = WebhookEndpoint.id == row.id
        if row.authorization_id and self.pause_unauthorized_endpoints(
            is_it, session=session, now=now
        ):
            return None
        due = (
            select(DeliveryRow)
            .where(mine, self.build_sendable_condition(now))
            .order_by(DeliveryRow.next_try_at, DeliveryRow.id)
            .limit(1)
        )
        while (found := session.scalar(due)) is not None:
            before = session.scalar(
                select(DeliveryRow.next_try_at)
                .where(
                    mine,
                    self.queue.is_waiting,
                    DeliveryRow.order_key == found.order_key,
                    DeliveryRow.id < found.id,
                )
                .order_by(DeliveryRow.id)
                .limit(1)
            )
            if before is None:
                return found.id, OutgoingMessage(id=found.message_id, body=found.body.encode())
            # An earlier delivery about the same alert must be sent first. Of two deliveries that
            # are due at the same time, the delivery with the lower ID is sent first.
            found.next_try_at = before
            session.flush()
        return None

    def _find_cancellation_reason(self, row: WebhookEndpoint, session: Session) -> str | None:
        """Return the reason why deliveries to an endpoint are canceled, or None."""
        deleted_at, archived_at = session.execute(
            select(Project.deleted_at, Project.archived_at).where(Project.id == row.project_id)
        ).one()
        if deleted_at is not None:
            return _DELETED_REASON
        return _ARCHIVED_REASON if archived_at is not None else None

    def record_accepted_message(
        self,
        row: WebhookEndpoint | None,
        delivery: ClaimedDelivery,
        attempt: DeliveryAttempt,
        *,
        session: Session,
        now: datetime,
    ) -> None:
        """Record a successful delivery in the log."""
        del row
        entry = session.get(DeliveryRow, delivery.entry_id, with_for_update=True)
        if entry is not None:
            record_attempt(entry, attempt, now=now)
            entry.state, entry.next_try_at = DeliveryState.DELIVERED.value, None

    def record_rejected_message(
        self, row: WebhookEndpoint, refusal: FailedAttempt, *, session: Session, now: datetime
    ) -> DeliveryFailure:
        """Record a failed attempt in the log.

        A delivery that has been failing for days is abandoned. An endpoint without a successful
        delivery for days is paused.
        """
        delivery, attempt, failure = refusal.delivery, refusal.attempt, refusal.failure
        entry = delivery and session.get(DeliveryRow, delivery.entry_id, with_for_update=True)
        if entry:
            record_attempt(entry, attempt, now=now)
            entry.next_try_at = max(
                failure.next_try_at, now + refusal.retries.compute_delay(attempt, entry.tries)
            )
            if now - entry.queued_at >= MAX_DELIVERY_AGE:
                entry.state, entry.next_try_at = DeliveryState.FAILED.value, None
        is_gone = attempt.status == _GONE_STATUS
        if is_gone or now - failure.failing_since >= refusal.retries.patience:
            reason = PauseReason.GONE if is_gone else PauseReason.FAILURES
            # There is no delivery if its URL could not be decrypted.
            subject = parse_outgoing_url(delivery.url if delivery else row.url).redacted
            self._pause_endpoint(row, reason, subject, session=session, now=now)
        return failure

    def _pause_endpoint(
        self,
        endpoint: WebhookEndpoint,
        reason: PauseReason,
        subject: str,
        *,
        session: Session,
        now: datetime,
    ) -> None:
        """Pause a locked endpoint, and record the reason in the audit log."""
        if endpoint.paused_at is None:
            self.lock_owner(endpoint.project_id, session)
            endpoint.paused_at, endpoint.pause_reason = now, reason.value
            session.flush()
            self.update_alert_subscription(endpoint.project_id, session)
        details = {"change": "paused", "webhook_id": endpoint.id, "reason": reason.value}
        place = NamespaceIds(project_id=endpoint.project_id)
        event = Event(kind=EventKind.WEBHOOK_CHANGED, subject=subject, details=details, place=place)
        store_event(event, EventSource(), session=session, now=now)

    def store_authorization(
        self, endpoint_id: int, authorization_id: int | None, *, session: Session
    ) -> None:
        """Store the authorization of the application that set the URL, or None if a user set it."""
        session.execute(
            build_bulk_update(WebhookEndpoint)
            .where(WebhookEndpoint.id == endpoint_id)
            .values(authorization_id=authorization_id)
        )

    def pause_unauthorized_endpoints(
        self, *conditions: ColumnElement[bool], session: Session, now: datetime
    ) -> int:
        """Pause the endpoints whose URL was set by an application that no longer has access.

        Return the number of paused endpoints. Only endpoints that meet the conditions are paused.
        """
        ended = session.scalars(
            select(WebhookEndpoint)
            .where(
                WebhookEndpoint.paused_at.is_(None),
                ~has_live_access(WebhookEndpoint.authorization_id, now),
                *conditions,
            )
            .order_by(WebhookEndpoint.id)
            .with_for_update()
        ).all()
        for endpoint in ended:
            subject = f"webhook {endpoint.id}"
            self._pause_endpoint(
                endpoint, PauseReason.APPLICATION, subject, session=session, now=now
            )
        return len(ended)


WEBHOOK_KIND = WebhookManager()


def find_failing_endpoints(
    *, session: Session, keyring: Keyring, now: datetime
) -> Sequence[tuple[int, Webhook]]:
    """Return endpoints that are failing or were paused after failures, each with its project ID."""
    reasons = (PauseReason.FAILURES.value, PauseReason.GONE.value)
    has_failed = WebhookEndpoint.failing_since.is_not(None)
    was_paused = WebhookEndpoint.pause_reason.in_(reasons)
    found = WEBHOOK_KIND.find_destinations(
        has_failed | was_paused, session=session, keyring=keyring, now=now
    )
    ids = [each.id for each in found]
    owners = select(WebhookEndpoint.id, WebhookEndpoint.project_id)
    projects = dict(session.execute(owners.where(WebhookEndpoint.id.in_(ids))).all())
    return [(projects[each.id], each) for each in found]


def record_attempt(row: DeliveryRow, attempt: DeliveryAttempt, *, now: datetime) -> None:
    """Record the result of an attempt in the log."""
    row.tries += 1
    row.last_try_at = now
    row.status_code, row.duration = attempt.status, attempt.milliseconds
    row.response = attempt.response.decode(errors="replace").replace("\x00", "\ufffd")
    row.error = attempt.problem


def list_deliveries(
    endpoint_id: int, state: DeliveryState | None, keyset_range: KeysetRange, *, session: Session
) -> KeysetPage[WebhookDelivery]:
    """Return a page of the deliveries to an endpoint, newest first."""
    statement = (
        select(DeliveryRow)
        .where(DeliveryRow.endpoint_id == endpoint_id)
        .options(defer(DeliveryRow.body), defer(DeliveryRow.response))
    )
    if state is not None:
        statement = statement.where(DeliveryRow.state == state.value)

    def view(row: Row[Any]) -> WebhookDelivery:
        return WebhookDelivery.model_validate(row[0])

    return fetch_page(statement, DeliveryRow.id, keyset_range, session=session, view=view)


def list_recent_deliveries(endpoint_id: int, *, session: Session) -> Sequence[WebhookDelivery]:
    """Return the newest deliveries to an endpoint, up to a fixed number."""
    return list_deliveries(
        endpoint_id, None, KeysetRange(size=_RECENT_DELIVERY_COUNT), session=session
    ).items


def get_delivery(endpoint_id: int, delivery_id: int, *, session: Session) -> WebhookDeliveryDetail:
    """Return a delivery with its body and the last response.

    Raise NotFoundError if the endpoint has no delivery with this ID.
    """
    row = _get_delivery_row(endpoint_id, delivery_id, session)
    return WebhookDeliveryDetail(
        **dict(WebhookDelivery.model_validate(row)),
        headers=build_unsigned_headers(row.message_id, now=row.last_try_at or row.created_at),
        body=row.body,
        response=row.response,
    )


def _get_delivery_row(endpoint_id: int, delivery_id: int, session: Session) -> DeliveryRow:
    row = session.get(DeliveryRow, delivery_id, with_for_update=True)
    if row is None or row.endpoint_id != endpoint_id:
        raise NotFoundError("Delivery not found. It may have been removed from the log.")
    return row


def requeue_delivery(
    endpoint_id: int, delivery_id: int, *, session: Session, now: datetime
) -> None:
    """Queue a delivery again with its original ID.

    The delivery no longer waits for earlier deliveries about the same alert or incident. A delivery
    that is still queued is attempted immediately. Raise ConflictError if the webhook is paused.
    """
    row = _get_delivery_row(endpoint_id, delivery_id, session)
    endpoint = session.get_one(WebhookEndpoint, endpoint_id, with_for_update=True)
    if endpoint.paused_at is not None:
        raise ConflictError("The webhook is paused. Resume it first.")
    if row.state != DeliveryState.WAITING.value:
        row.state, row.order_key, row.tries = DeliveryState.WAITING.value, None, 0
    row.queued_at = row.next_try_at = now
    endpoint.next_try_at = None
    session.flush()


def store_test_delivery(
    work: UnitOfWork, endpoint_id: int, message: OutgoingMessage, attempt: DeliveryAttempt
) -> int | None:
    """Record a test message in the log.

    Return the ID of the log entry, or None if the endpoint was deleted.
    """
    session, now = work.session, work.now
    endpoint = session.get(WebhookEndpoint, endpoint_id)
    if endpoint is None:
        return None
    body = message.body.decode()
    row = DeliveryRow(**build_delivery_row(endpoint, TEST_EVENT, body, order_key=None, now=now))
    row.message_id, row.next_try_at = message.id, None
    is_taken = attempt.problem is None
    row.state = (DeliveryState.DELIVERED if is_taken else DeliveryState.FAILED).value
    record_attempt(row, attempt, now=now)
    session.add(row)
    session.flush()
    return row.id


_IS_WAITING = WEBHOOK_KIND.queue.is_waiting


@dataclass(frozen=True, kw_only=True)
class WebhookBacklog:
    """The state of the queue for all endpoints, and the number of failing endpoints."""

    deliveries: int
    oldest: datetime | None
    #: Number of endpoints whose last attempt failed, and number of endpoints paused by the service.
    failing: int
    paused: int


def get_webhook_backlog(*, session: Session) -> WebhookBacklog:
    """Return the state of the queue for all endpoints, and the number of failing endpoints."""
    deliveries, oldest = session.execute(
        select(func.count(), func.min(DeliveryRow.queued_at)).where(_IS_WAITING)
    ).one()
    failing = select(func.count()).where(
        WebhookEndpoint.failing_since.is_not(None), WebhookEndpoint.paused_at.is_(None)
    )
    paused = select(func.count()).where(
        WebhookEndpoint.pause_reason.is_not(None), WebhookEndpoint.pause_reason != "user"
    )
    return WebhookBacklog(
        deliveries=deliveries,
        oldest=oldest,
        failing=session.scalar(failing) or 0,
        paused=session.scalar(paused) or 0,
    )


def abandon_old_deliveries(
    *,
    session: Session,
    now: datetime,
    commit_batch: CommitCallback,
    maximum: int = MAX_WAITING_DELIVERIES,
) -> int:
    """Abandon deliveries that waited too long, and the oldest deliveries above the maximum.

    Return the number of abandoned deliveries. If an endpoint is down or paused, its deliveries can
    be abandoned without having been attempted.
    """
    # The four hours leave time for the last attempt of a delivery.
    before = now - MAX_DELIVERY_AGE - timedelta(hours=4)
    total = _abandon_deliveries(
        DeliveryRow.queued_at < before, _EXPIRED_REASON, session, commit_batch
    )
    for _, surplus in WEBHOOK_KIND.find_surplus_entries(maximum, _IS_WAITING, session=session):
        total += _abandon_deliveries(surplus, _SURPLUS_REASON, session, commit_batch)
    return total


def _abandon_deliveries(
    condition: ColumnElement[bool], reason: str, session: Session, commit_batch: CommitCallback
) -> int:
    some = select(DeliveryRow.id).where(_IS_WAITING, condition).limit(_BATCH_SIZE)
    total = 0
    while ids := session.scalars(some).all():
        session.execute(
            build_bulk_update(DeliveryRow)
            .where(DeliveryRow.id.in_(ids), _IS_WAITING)
            .values(
                state=DeliveryState.FAILED.value,
                next_try_at=None,
                error=func.coalesce(DeliveryRow.error, reason),
            )
        )
        commit_batch()
        total += len(ids)
    return total


def prune_webhook_log(
    *,
    before: datetime,
    session: Session,
    commit_batch: CommitCallback,
    maximum: int = MAX_FINISHED_DELIVERIES,
) -> int:
    """Delete finished deliveries that are old or surplus, and deliveries to deleted endpoints."""

    def delete_deliveries(condition: ColumnElement[bool]) -> int:
        return WEBHOOK_KIND.delete_entries(condition, session=session, commit_batch=commit_batch)

    is_done = ~_IS_WAITING
    total = delete_deliveries(is_done & (DeliveryRow.created_at < before))
    for _, surplus in WEBHOOK_KIND.find_surplus_entries(maximum, is_done, session=session):
        total += delete_deliveries(surplus)
    return total + delete_deliveries(WEBHOOK_KIND.build_orphan_condition())


def queue_webhook_notices(
    notice_settings: DestinationNoticeSettings, *, session: Session, now: datetime
) -> int:
    """Queue the notices that are due, and return the number of new emails.

    A notice is due when an endpoint has been failing for a day, and when an endpoint was paused
    after failures.
    """
    messages = []
    troubled = find_failing_endpoints(session=session, keyring=notice_settings.keyring, now=now)
    for project_id, endpoint in troubled:
        if endpoint.state in {DestinationState.PAUSED, DestinationState.FAILING}:
            path, people = find_maintainers(None, project_id, session=session, today=now.date())
            notice = _build_notice(endpoint, path, notice_settings)
            messages += [notice.build_email(each, notice_settings) for each in people]
    return queue_emails(messages, session=session, keyring=notice_settings.keyring, now=now)


def _build_notice(
    endpoint: Webhook, path: str, notice_settings: DestinationNoticeSettings
) -> DestinationNotice:
    url, error = endpoint.redacted_url, endpoint.last_error
    page, role = f"{path}/-/settings/webhooks/{endpoint.id}", f"a maintainer of {path}"
    if endpoint.paused_at is not None:
        gone = endpoint.pause_reason is PauseReason.GONE
        why = (
            "The URL returned 410 Gone."
            if gone
            else f"No delivery succeeded for {notice_settings.days} days. Last error: {error}."
        )
        return DestinationNotice(
            key=f"webhook {endpoint.id} paused at {endpoint.paused_at.isoformat()}",
            subject=f"A webhook was paused: {path}",
            path=page,
            role=role,
            lines=(
                f"The webhook to {url} was paused.",
                why,
                "Nothing is sent to it until you resume it.",
            ),
        )
    since = endpoint.failing_since.isoformat() if endpoint.failing_since else ""
    return DestinationNotice(
        key=f"webhook {endpoint.id} failing since {since}",
        subject=f"A webhook cannot be delivered: {path}",
        path=page,
        role=role,
        lines=(
            f"No delivery to {url} succeeded for a day. Last error: {error}.",
            f"Waiting deliveries: {endpoint.backlog}. Each is discarded after three days.",
            (
                f"After {notice_settings.days} days without a successful delivery, "
                "the webhook is paused."
            ),
        ),
    )
