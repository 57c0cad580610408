"""Queries for the history of an escalation: who ended it, and whether a round reached nobody."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.listing.status_history import find_status_changes
from domain.paging.notifications.states import PageState
from models import Escalation, EscalationPage

_TRIGGERED = "triggered"


def has_failed_round(row: Escalation, *, session: Session) -> bool:
    """Return whether the previous round reached nobody."""
    if row.round == 1 or row.last_paged_at is None:
        return row.round > 1
    outcomes = session.scalars(
        select(EscalationPage.outcome).where(
            EscalationPage.escalation_id == row.id,
            EscalationPage.round == row.round - 1,
            EscalationPage.step > 0,
        )
    ).all()
    # If this alert has no pages, the earlier alert that it continues may have reached a user.
    return bool(outcomes) and PageState.ACCEPTED.value not in outcomes


def describe_escalation_end(row: Escalation, status: str, *, session: Session) -> str:
    """Describe who ended an escalation and how, as part of a sentence."""
    first = None
    for note in find_status_changes([row.alert_id], session=session):
        # An escalation that was created in the stopped state starts after the status was set.
        is_earlier = row.started_at != row.ended_at and note.created_at < row.started_at
        if note.text == _TRIGGERED:
            first = None
        elif not is_earlier and (row.ended_at is None or note.created_at <= row.ended_at):
            first = first or note
    if first is None:
        return f"the alert was {status}"
    if first.author:
        return f"@{first.author} {first.text} the alert"
    return f"the alert was {first.text}"
