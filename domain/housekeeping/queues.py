"""All queues of work that leaves the service or follows a change, for operators.

Each queue is declared once. The administration page, the metrics and `gatebell queues` use the same
states and the same actions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field
from sqlalchemy.orm import Session

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.alerts.change_feed import (
    Follower,
    get_change_queue_state,
    list_failing_projects,
    retry_changes,
)
from domain.audit.events import EventKind
from domain.core.errors import ConflictError, NotFoundError
from domain.core.keyring import Keyring
from domain.core.types.base import Resource, Time
from domain.core.types.pagination import ListPage, OffsetQuery
from domain.delivery.audit_streams.streams import AUDIT_STREAM_KIND
from domain.delivery.destination_queues import (
    get_destination_queue_state,
    list_failing_destinations,
)
from domain.delivery.mail.failing_mail import give_up_emails, list_failing_domains, retry_emails
from domain.delivery.mail.outbox import get_mail_queue_state
from domain.delivery.queue import FailingDestination, QueueState
from domain.delivery.webhooks.failing_webhooks import (
    get_webhook_queue_state,
    give_up_deliveries,
    list_failing_webhooks,
    retry_webhook,
)
from domain.housekeeping.assignment_mail import get_assignment_queue_state
from domain.oauth.openid.backchannel_logout import (
    get_logout_queue_state,
    list_failing_applications,
    retry_logout_notifications,
)
from domain.paging.notifications.message_queue import CONTACT_QUEUE
from domain.paging.notifications.message_queue_state import (
    get_paging_queue_state,
    list_failing_contacts,
)
from domain.paging.notifications.outbox import give_up_tried_messages
from domain.registry.removal import (
    REMOVAL_QUEUE,
    get_removal_queue_state,
    give_up_removal,
    list_failing_removals,
)
from models import Contact, RegistryRemoval


def _list_nothing(_work: UnitOfWork) -> Sequence[FailingDestination]:
    return ()


def _retry_nothing(_work: UnitOfWork, _destination_id: str) -> None:
    """Do nothing, since the queue has no failing destinations."""


@dataclass(frozen=True, kw_only=True)
class OperatedQueue:
    """A queue, with the functions that show its state, retry its destinations or give up."""

    name: str
    title: str
    get_state: Callable[[Session, datetime], QueueState]
    list_failing: Callable[[UnitOfWork], Sequence[FailingDestination]] = _list_nothing
    retry: Callable[[UnitOfWork, str], object] = _retry_nothing
    #: Function that gives up the waiting items of a destination and returns their number. None if
    #: they would be lost, or if the queue gives them up itself after a short time.
    give_up: Callable[[UnitOfWork, str], int] | None = None
    #: True if users choose the names of destinations. The audit log then omits the names.
    has_personal_names: bool = False


def _build_change_queue(follower: Follower, title: str) -> OperatedQueue:
    return OperatedQueue(
        name=f"alert_changes_{follower.value}",
        title=title,
        get_state=lambda session, _now: get_change_queue_state(follower, session=session),
        list_failing=lambda work: list_failing_projects(follower, session=work.session),
        retry=lambda work, project_id: retry_changes(
            follower, int(project_id), session=work.session, now=work.now
        ),
    )


def _retry_stream(work: UnitOfWork, stream_id: str) -> None:
    AUDIT_STREAM_KIND.resume_destination(int(stream_id), session=work.session)


QUEUES = (
    OperatedQueue(
        name="pages",
        title="Pages and notices to contacts",
        get_state=lambda session, now: get_paging_queue_state(session=session, now=now),
        has_personal_names=True,
        list_failing=lambda work: list_failing_contacts(session=work.session),
        retry=lambda work, contact_id: CONTACT_QUEUE.retry_now(
            Contact.id == int(contact_id), session=work.session, now=work.now
        ),
        give_up=lambda work, contact_id: give_up_tried_messages(
            int(contact_id), session=work.session, now=work.now
        ),
    ),
    OperatedQueue(
        name="email",
        title="Email",
        get_state=lambda session, now: get_mail_queue_state(session=session, now=now),
        list_failing=lambda work: list_failing_domains(session=work.session, now=work.now),
        retry=lambda work, domain: retry_emails(domain, session=work.session, now=work.now),
        give_up=lambda work, domain: give_up_emails(
            domain, session=work.session, keyring=work.policy(Keyring), now=work.now
        ),
    ),
    OperatedQueue(
        name="webhooks",
        title="Webhooks",
        get_state=lambda session, _now: get_webhook_queue_state(session=session),
        list_failing=lambda work: list_failing_webhooks(
            session=work.session, keyring=work.policy(Keyring), now=work.now
        ),
        retry=lambda work, webhook_id: retry_webhook(
            int(webhook_id), session=work.session, now=work.now
        ),
        give_up=lambda work, webhook_id: give_up_deliveries(int(webhook_id), session=work.session),
    ),
    OperatedQueue(
        name="audit_streams",
        title="Audit streams",
        get_state=lambda session, _now: get_destination_queue_state(
            AUDIT_STREAM_KIND, session=session
        ),
        list_failing=lambda work: list_failing_destinations(
            AUDIT_STREAM_KIND, session=work.session, keyring=work.policy(Keyring), now=work.now
        ),
        retry=_retry_stream,
    ),
    _build_change_queue(Follower.ESCALATIONS, "Alert changes for escalations"),
    _build_change_queue(Follower.INCIDENTS, "Alert changes for incident rules"),
    _build_change_queue(Follower.WEBHOOKS, "Alert changes for webhooks"),
    OperatedQueue(
        name="registry_removals",
        title="Deletions in the container registry",
        get_state=lambda session, now: get_removal_queue_state(session=session, now=now),
        list_failing=lambda work: list_failing_removals(session=work.session),
        retry=lambda work, removal_id: REMOVAL_QUEUE.retry_now(
            RegistryRemoval.id == int(removal_id), session=work.session, now=work.now
        ),
        give_up=lambda work, removal_id: give_up_removal(int(removal_id), session=work.session),
    ),
    OperatedQueue(
        name="logout_notifications",
        title="Logout notifications to applications",
        get_state=lambda session, _now: get_logout_queue_state(session=session),
        list_failing=lambda work: list_failing_applications(session=work.session),
        retry=lambda work, application_id: retry_logout_notifications(
            int(application_id), session=work.session, now=work.now
        ),
    ),
    OperatedQueue(
        name="assignment_notices",
        title="Notices about assignments",
        get_state=lambda session, _now: get_assignment_queue_state(session=session),
    ),
)
_QUEUES_BY_NAME = {each.name: each for each in QUEUES}


class QueueQuery(OffsetQuery):
    """Query parameters for lists of queues and destinations, in a fixed order."""

    order_by: Literal["name"] = "name"
    sort: Literal["asc"] = "asc"


class Queue(Resource):
    """A queue with its state."""

    name: str
    title: str
    waiting: int = Field(description="Number of waiting items.")
    oldest_at: Time | None = Field(description="Time since which the oldest item waits.")
    failing: int = Field(description="Number of items or destinations whose last attempt failed.")


class QueueDestination(Resource):
    """A destination of a queue whose last attempt failed."""

    queue: str
    id: str
    name: str
    about: str
    waiting: int = Field(description="Number of waiting items for the destination.")
    attempts: int = Field(description="Number of failed attempts.")
    failing_since: Time | None
    last_error: str | None
    next_attempt_at: Time | None
    can_be_given_up: bool


def get_queue(name: str) -> OperatedQueue:
    """Return the queue with a name.

    Raise NotFoundError if there is no such queue.
    """
    if name not in _QUEUES_BY_NAME:
        message = f"Queue not found. The queues are {', '.join(_QUEUES_BY_NAME)}."
        raise NotFoundError(message)
    return _QUEUES_BY_NAME[name]


@read_action("queues.index")
def list_queues(work: UnitOfWork, query: QueueQuery) -> ListPage[Queue]:
    """List the queues with the number of waiting items and of failures."""
    return query.build_page([_build_queue(each, work) for each in QUEUES])


def _build_queue(queue: OperatedQueue, work: UnitOfWork) -> Queue:
    state = queue.get_state(work.session, work.now)
    return Queue(
        name=queue.name,
        title=queue.title,
        waiting=state.waiting,
        oldest_at=state.oldest_at,
        failing=state.failing,
    )


@read_action("queues.failing", plural="destinations")
def list_failing_queue_destinations(
    work: UnitOfWork, query: QueueQuery
) -> ListPage[QueueDestination]:
    """List the destinations whose last attempt failed."""
    return query.build_page([each for queue in QUEUES for each in _list_failing(queue, work)])


def _list_failing(queue: OperatedQueue, work: UnitOfWork) -> list[QueueDestination]:
    return [
        QueueDestination.model_validate(
            {
                **vars(each),
                "queue": queue.name,
                "can_be_given_up": queue.give_up is not None and each.waiting > 0,
            }
        )
        for each in queue.list_failing(work)
    ]


def _find_destination(
    queue: OperatedQueue, destination_id: str, work: UnitOfWork
) -> QueueDestination:
    """Return a failing destination of a queue.

    Raise NotFoundError if the destination is not failing.
    """
    for each in _list_failing(queue, work):
        if each.id == destination_id:
            return each
    raise NotFoundError("Destination not found. It may have recovered in the meantime.")


@action("queues.retry")
def retry_destination(work: UnitOfWork, kind: str, destination_id: str) -> QueueDestination:
    """Retry a failing destination immediately.

    Raise NotFoundError if the destination is not failing, or ConflictError if nothing is waiting
    for it.
    """
    queue = get_queue(kind)
    destination = _find_destination(queue, destination_id, work)
    if not destination.waiting:
        raise ConflictError("Nothing is waiting for this destination.")
    queue.retry(work, destination.id)
    _record_event(work, EventKind.QUEUE_RETRIED, destination)
    return destination.model_copy(update={"next_attempt_at": work.now})


@action("queues.give_up")
def give_up_destination(work: UnitOfWork, kind: str, destination_id: str) -> QueueDestination:
    """Give up the waiting items of a failing destination.

    Raise NotFoundError if the destination is not failing, or ConflictError if nothing is waiting
    for it or its queue does not support this.
    """
    queue = get_queue(kind)
    destination = _find_destination(queue, destination_id, work)
    if queue.give_up is None:
        raise ConflictError("Items of this queue cannot be given up.")
    given_up = queue.give_up(work, destination.id)
    if not given_up:
        raise ConflictError("Nothing that failed is waiting for this destination.")
    _record_event(work, EventKind.QUEUE_GIVEN_UP, destination, items=given_up)
    rest = destination.waiting - given_up
    return destination.model_copy(update={"waiting": rest, "can_be_given_up": rest > 0})


def _record_event(
    work: UnitOfWork, kind: EventKind, destination: QueueDestination, **details: object
) -> None:
    subject = "" if get_queue(destination.queue).has_personal_names else destination.name
    about = {"queue": destination.queue, "destination_id": destination.id}
    work.record_audit_event(kind, subject=subject, details={**about, **details})
