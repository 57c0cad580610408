"""Endpoints of projects, and their deliveries.

Deliveries about the same alert or incident are sent in their order: while one waits to be tried
again, later ones wait behind it. Others go on.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, literal_column, select
from sqlalchemy.orm import Session

from domain.alerts.following import Follower, follow, unfollow
from domain.alerts.matching.conditions import conditions_from
from domain.audit.events import Event, EventKind, EventSource, store_event
from domain.due import Moment
from domain.outgoing.claims import Attempt, Claim, Delivery, Failure
from domain.outgoing.destinations import DestinationKind, Queue, Refusal
from domain.outgoing.signing import Message
from domain.outgoing_urls import parse_outgoing_url
from domain.webhooks.types import (
    DeliveryState,
    EndpointDetails,
    PauseReason,
    Webhook,
    read_events,
    takes_alerts,
)
from models import Project, WebhookDelivery, WebhookEndpoint

#: Of a project; each one costs a row for every event.
MOST_ENDPOINTS = 20
#: A delivery that failed for so long is given up.
GIVE_UP_AFTER = timedelta(days=3)
_GONE = 410


class Webhooks(DestinationKind[WebhookEndpoint, Webhook, EndpointDetails]):
    """What endpoints of projects do otherwise than other destinations."""

    noun = message_noun = "webhook"
    most = MOST_ENDPOINTS
    too_many = f"A project can have {MOST_ENDPOINTS} webhooks: delete one first."
    not_found = "Webhook not found in this project."
    #: So that an endpoint is not left alone for hours when it is there again; the pauses of a
    #: delivery do grow.
    most_counted_failures = 12
    turn_seconds = 20.0
    row = WebhookEndpoint
    owner_column = "project_id"
    queue = Queue(
        entry=WebhookDelivery,
        destination=WebhookDelivery.endpoint_id,
        queued_at=WebhookDelivery.queued_at,
        is_waiting=WebhookDelivery.state == literal_column(f"'{DeliveryState.WAITING}'"),
    )

    def view(self, row: WebhookEndpoint, *more: Any, **shared: Any) -> Webhook:
        """Return the view of a row."""
        del more
        return Webhook.model_validate(
            {
                **shared,
                **conditions_from(row.conditions).to_json(),
                "events": row.events,
                "active": row.paused_at is None,
                "pause_reason": row.pause_reason,
            }
        )

    def columns(self, details: EndpointDetails) -> Mapping[str, object]:
        """Return events and conditions, or raise InvalidError."""
        return {
            "events": [*read_events(details.events)],
            "conditions": details.conditions.to_json(),
        }

    def may_be_sent(self, now: Moment) -> ColumnElement[bool]:
        """Return the condition for deliveries that are due."""
        return and_(self.queue.is_waiting, WebhookDelivery.next_try_at <= now)

    def lock(self, owner: int | None, session: Session) -> None:
        """Let one change of a project's endpoints follow the other."""
        project = select(Project.id).where(Project.id == owner)
        # The weaker lock: alerts that are stored meanwhile refer to the project.
        session.execute(project.with_for_update(key_share=True))

    def changed(self, owner: int | None, session: Session) -> None:
        """Follow the project's alerts if and only if an endpoint gets their events."""
        mine = WebhookEndpoint.project_id == owner, WebhookEndpoint.paused_at.is_(None)
        chosen = session.scalars(select(WebhookEndpoint.events).where(*mine))
        change = follow if any(map(takes_alerts, chosen)) else unfollow
        change(owner or 0, Follower.WEBHOOKS, session=session)

    def stop(self, row: WebhookEndpoint, now: datetime) -> None:
        """Mark an endpoint as paused by a maintainer: nothing is queued any more."""
        row.paused_at, row.pause_reason = now, PauseReason.USER.value

    def start(self, row: WebhookEndpoint) -> None:
        """Mark an endpoint as not paused."""
        if row.paused_at is not None:
            # The days without a success begin anew.
            row.failing_since, row.tries = None, 0
        row.pause_reason = None
        super().start(row)

    def first(
        self, row: WebhookEndpoint, *, session: Session, now: datetime
    ) -> tuple[int, Message] | None:
        """Return the delivery that has been due for longest, after earlier ones of its alert."""
        mine = WebhookDelivery.endpoint_id == row.id
        due = (
            select(WebhookDelivery)
            .where(mine, self.may_be_sent(now))
            .order_by(WebhookDelivery.next_try_at, WebhookDelivery.id)
            .limit(1)
        )
        while (found := session.scalar(due)) is not None:
            before = session.scalar(
                select(WebhookDelivery.next_try_at)
                .where(
                    mine,
                    self.queue.is_waiting,
                    WebhookDelivery.order_key == found.order_key,
                    WebhookDelivery.id < found.id,
                )
                .order_by(WebhookDelivery.id)
                .limit(1)
            )
            if before is None:
                return found.id, Message(id=found.message_id, body=found.body.encode())
            # An earlier one of the same alert has to go first; of equal times the lower id is.
            found.next_try_at = before
            session.flush()
        return None

    def taken(
        self, claim: Claim, delivery: Delivery, attempt: Attempt, *, session: Session, now: datetime
    ) -> None:
        """Write the success into the log."""
        del claim
        row = session.get(WebhookDelivery, delivery.entry_id, with_for_update=True)
        if row is not None:
            note_attempt(row, attempt, now=now)
            row.state, row.next_try_at = DeliveryState.DELIVERED.value, None

    def refused(
        self, claim: Claim, refusal: Refusal, *, session: Session, now: datetime
    ) -> Failure:
        """Write the failure into the log.

        What has failed for days is given up, and an endpoint that took nothing for days is paused.
        """
        delivery, attempt, failure = refusal.delivery, refusal.attempt, refusal.failure
        row = delivery and session.get(WebhookDelivery, delivery.entry_id, with_for_update=True)
        if row:
            note_attempt(row, attempt, now=now)
            row.next_try_at = max(
                failure.next_try_at, now + refusal.retries.pause(attempt, row.tries)
            )
            if now - row.queued_at >= GIVE_UP_AFTER:
                row.state, row.next_try_at = DeliveryState.FAILED.value, None
        if attempt.status == _GONE:
            self._pause_for(PauseReason.GONE, claim, session=session, now=now)
        elif now - failure.failing_since >= refusal.retries.patience:
            self._pause_for(PauseReason.FAILURES, claim, session=session, now=now)
        return failure

    def _pause_for(
        self, reason: PauseReason, claim: Claim, *, session: Session, now: datetime
    ) -> None:
        endpoint = session.get_one(WebhookEndpoint, claim.destination_id, with_for_update=True)
        if endpoint.paused_at is None:
            self.lock(endpoint.project_id, session)
            endpoint.paused_at, endpoint.pause_reason = now, reason.value
            session.flush()
            self.changed(endpoint.project_id, session)
        details = {"change": "paused", "webhook_id": endpoint.id, "reason": reason.value}
        subject = parse_outgoing_url(endpoint.url).shown
        event = Event(kind=EventKind.WEBHOOK_CHANGED, subject=subject, details=details)
        store_event(event, EventSource(), session=session, now=now)


WEBHOOKS = Webhooks()


def troubled_endpoints(*, session: Session, now: datetime) -> Sequence[tuple[int, Webhook]]:
    """Return what fails, or was paused because of it, each with the id of its project."""
    reasons = (PauseReason.FAILURES.value, PauseReason.GONE.value)
    has_failed = WebhookEndpoint.failing_since.is_not(None)
    was_paused = WebhookEndpoint.pause_reason.in_(reasons)
    found = WEBHOOKS.find(has_failed | was_paused, session=session, now=now)
    ids = [each.id for each in found]
    owners = select(WebhookEndpoint.id, WebhookEndpoint.project_id)
    projects = dict(session.execute(owners.where(WebhookEndpoint.id.in_(ids))).all())
    return [(projects[each.id], each) for each in found]


def note_attempt(row: WebhookDelivery, attempt: Attempt, *, now: datetime) -> None:
    """Write the result of an attempt into the log."""
    row.tries += 1
    row.last_try_at = now
    row.status_code, row.duration = attempt.status, attempt.milliseconds
    row.response = attempt.response.decode(errors="replace").replace("\x00", "\ufffd")
    row.error = attempt.problem
