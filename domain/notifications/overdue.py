"""Pages that should have left by now."""

from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from models import Contact, Page, PageMessage, PageRecipient

#: Pages wait for each other for half a minute.
_PUNCTUAL = timedelta(minutes=1)


def count_overdue(*, session: Session, now: datetime) -> int:
    """Return how many pages and messages about alerts are past their time by more than a minute.

    Messages that wait for another attempt at a contact which fails are not.
    """
    before = now - _PUNCTUAL
    pages = select(func.count(Page.id)).join(PageRecipient, PageRecipient.id == Page.recipient_id)
    ungathered = pages.where(
        PageRecipient.due_at.is_not(None),
        Page.batch_id.is_(None),
        Page.withdrawn_at.is_(None),
        Page.due_at < before,
    )
    messages = select(func.count(PageMessage.id)).join(
        Contact, Contact.id == PageMessage.contact_id
    )
    unsent = messages.where(PageMessage.ended_at.is_(None), Contact.next_try_at < before)
    return (session.scalar(ungathered) or 0) + (session.scalar(unsent) or 0)
