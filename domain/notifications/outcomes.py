"""What becomes of pages: accepted by a contact, or failed at all of them.

Pages that somebody waits for have news then, which their escalation takes
(`domain/escalations/running.py`). Several contacts of one batch may end at once, so each locks the
batch before it looks at the others.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, exists, insert, literal, null, or_, select, update
from sqlalchemy.orm import Session

from domain.alerts.handling.activity import NoteKind
from domain.notifications.paging import PageKind
from domain.notifications.states import PageEvent, PageState, outcomes_before
from models import AlertNote, Contact, Page, PageBatch, PageMessage, PageRecipient, User

_SENT = "sent"


def _is_live(event: PageEvent, outcome: PageState) -> tuple[ColumnElement[bool], ...]:
    """Return which pages an event leads to an outcome, as the table of states says."""
    before = outcomes_before(outcome, event)
    stored = [each.value for each in before if each is PageState.FAILED]
    is_before = Page.outcome.is_(None)
    return (
        Page.kind == PageKind.FIRING.value,
        Page.withdrawn_at.is_(None),
        or_(is_before, Page.outcome.in_(stored)) if stored else is_before,
    )


def pages_accepted(batch_ids: Collection[int], *, session: Session, now: datetime) -> None:
    """Note that a contact accepted a message with the pages of batches."""
    live = _is_live(PageEvent.TAKEN, PageState.ACCEPTED)
    _end(PageState.ACCEPTED, Page.batch_id.in_(batch_ids), *live, session=session, now=now)


def pages_failed(
    event: PageEvent, *pages: ColumnElement[bool], session: Session, now: datetime
) -> None:
    """Note that pages reach nobody for now; `pages` selects them."""
    _end(PageState.FAILED, *pages, *_is_live(event, PageState.FAILED), session=session, now=now)


def _end(outcome: PageState, *pages: ColumnElement[bool], session: Session, now: datetime) -> None:
    session.execute(
        update(Page)
        .where(*pages)
        .values(outcome=outcome.value, outcome_at=now, has_news=True)
        .execution_options(synchronize_session=False)
    )


def failed_batches(batch_ids: Iterable[int], *, session: Session) -> Sequence[int]:
    """Lock batches and return those with live pages that no contact has accepted or is yet to try.

    The caller has stored the attempts that it knows of.
    """
    wanted = sorted(set(batch_ids))
    session.execute(
        select(PageBatch.id)
        .where(PageBatch.id.in_(wanted))
        .order_by(PageBatch.id)
        .with_for_update()
    )
    untried = PageMessage.ended_at.is_(None) & (PageMessage.tries == 0)
    hopeful = exists().where(
        PageMessage.batch_id == PageBatch.id, or_(PageMessage.outcome == _SENT, untried)
    )
    waited_for = exists().where(
        Page.batch_id == PageBatch.id, *_is_live(PageEvent.ALL_FAILED, PageState.FAILED)
    )
    return session.scalars(
        select(PageBatch.id)
        .where(PageBatch.id.in_(wanted), ~hopeful, waited_for)
        .order_by(PageBatch.id)
    ).all()


def batches_without(contact_id: int, batch_ids: Collection[int], *, session: Session) -> list[int]:
    """Return those of some batches of which no message goes to a contact."""
    told = select(PageMessage.batch_id).where(
        PageMessage.contact_id == contact_id, PageMessage.batch_id.in_(batch_ids)
    )
    return sorted(set(batch_ids) - set(session.scalars(told)))


def contact_is_going(contact: Contact, *, session: Session, now: datetime) -> None:
    """Judge the pages that wait for a contact that is deleted now; its messages go with it."""
    batches = session.scalars(
        select(PageMessage.batch_id).where(
            PageMessage.contact_id == contact.id,
            PageMessage.batch_id.is_not(None),
            PageMessage.ended_at.is_(None),
        )
    ).all()
    session.delete(contact)
    session.flush()  # The messages that are left are looked at.
    failed = failed_batches([each for each in batches if each is not None], session=session)
    pages_failed(PageEvent.ALL_FAILED, Page.batch_id.in_(failed), session=session, now=now)


def say_of_pages(
    text: str,
    *pages: ColumnElement[bool],
    user_id: int | None,
    name: str,
    session: Session,
    now: datetime,
) -> None:
    """Add an entry to the activity of the alert of each page, with one statement."""
    entries = (
        select(
            Page.alert_id,
            null() if user_id is None else literal(user_id),
            literal(name),
            literal(NoteKind.PAGE.value),
            literal(text),
            literal(now, AlertNote.created_at.type),
        )
        .where(*pages)
        .distinct()
    )
    columns = ("alert_id", "user_id", "user_name", "kind", "text", "created_at")
    session.execute(insert(AlertNote).from_select(columns, entries))


def recipient_cannot(
    recipient: PageRecipient,
    why: str,
    event: PageEvent,
    *pages: ColumnElement[bool],
    session: Session,
    now: datetime,
) -> None:
    """Note that pages of a recipient cannot leave, and why, as what follows a name."""
    firing = (*pages, *_is_live(event, PageState.FAILED))
    name = session.scalar(select(User.username).where(User.id == recipient.user_id)) or ""
    of = recipient.user_id
    say_of_pages(why, *firing, user_id=of, name=name, session=session, now=now)
    pages_failed(event, *pages, session=session, now=now)
