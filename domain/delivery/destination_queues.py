"""States of the queues of destinations, and destinations whose last attempt failed.

Messages for a paused destination do not count as waiting, since nothing is sent to it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, false, func, select
from sqlalchemy.orm import Session

from domain.core.keyring import Keyring
from domain.delivery.destination_types import Destination
from domain.delivery.outgoing.destinations import DestinationManager
from domain.delivery.queue import FailingDestination, QueueState, read_queue_state

_Manager = DestinationManager[Any, Any, Any]


def get_destination_queue_state(kind: _Manager, *, session: Session) -> QueueState:
    """Return the state of the queue for all destinations of a kind that are not paused."""
    queued = read_queue_state(
        kind.queue.is_waiting,
        kind.queue.destination == kind.row.id,
        kind.row.paused_at.is_(None),
        since=kind.queue.queued_at,
        has_failed=false(),
        session=session,
    )
    failing = select(func.count()).where(*_list_failing_conditions(kind))
    return QueueState(
        waiting=queued.waiting,
        oldest_at=queued.oldest_at,
        failing=session.scalar(failing) or 0,
    )


def _list_failing_conditions(kind: _Manager) -> tuple[ColumnElement[bool], ...]:
    return kind.row.failing_since.is_not(None), kind.row.paused_at.is_(None)


def list_failing_destinations(
    kind: _Manager,
    *,
    owners: Mapping[int, str] | None = None,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> Sequence[FailingDestination]:
    """Return the destinations whose last attempt failed, with the parts of their URLs to show.

    `owners` contains the paths of the projects that own destinations, by the ID of the destination.
    """
    found: Sequence[Destination] = kind.find_destinations(
        *_list_failing_conditions(kind), session=session, keyring=keyring, now=now
    )
    return [
        FailingDestination(
            id=str(each.id),
            name=each.redacted_url,
            about=(owners or {}).get(each.id, ""),
            waiting=each.backlog,
            attempts=each.failures,
            failing_since=each.failing_since,
            last_error=each.last_error,
            next_attempt_at=each.next_try_at,
        )
        for each in found
    ]
