"""Finds the most recent pages about an alert."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from domain.paging.escalations.reporting.explanation import list_sent_pages
from domain.paging.escalations.types import SentPage

#: Maximum number of recipients of the last step that are shown.
_MAX_LAST_PAGES = 5


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
