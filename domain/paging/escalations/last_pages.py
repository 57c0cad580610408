"""Finds the recipients of the last pages of an alert, and describes what happens next."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from domain.paging.escalations.explanation import list_sent_pages
from domain.paging.escalations.state import EscalationState
from domain.paging.escalations.types import SentPage

#: Maximum number of recipients of the last step that are shown.
_MAX_LAST_PAGES = 5
#: Descriptions of alerts without a due step, by the state of the escalation. The key None stands
#: for alerts without an escalation.
_SHORT_STATUSES = {
    EscalationState.UNPROCESSED: "not processed yet",
    EscalationState.RUNNING: "waiting for the results of the last pages",
    EscalationState.HELD: "paging is held back",
    EscalationState.EXHAUSTED: "nobody else is paged",
    EscalationState.UNANSWERED: "nobody answered",
    EscalationState.STOPPED: "paging stopped",
    EscalationState.ACKNOWLEDGED: "acknowledgement expires",
    EscalationState.LAPSED: "paging starts again",
    EscalationState.SNOOZED: "snooze ends",
    EscalationState.ESCALATED: "the next step runs now",
    EscalationState.NO_POLICY: "no escalation policy applies",
    EscalationState.POLICY_DELETED: "the escalation policy was deleted",
    None: "no page is due",
}


def get_short_status(state: EscalationState | None) -> str:
    """Return a short description of an alert's paging for the case that no step is due."""
    return _SHORT_STATUSES[state]


def list_last_pages(alert_id: int, *, session: Session) -> Sequence[SentPage]:
    """Return the pages of the latest step of an alert, or its latest manual page."""
    newest = list_sent_pages(
        [alert_id], None, size=_MAX_LAST_PAGES, is_oldest_first=False, session=session
    )
    return [
        each
        for each in reversed(newest)
        if (each.round, each.step) == (newest[0].round, newest[0].step)
    ]
