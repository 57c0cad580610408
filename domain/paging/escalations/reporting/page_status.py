"""The states of sent pages, and the reasons why contacts did not receive pages."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from domain.alerts.storing.lifecycle import RESOLVED
from domain.paging.escalations.types import ContactOutcome
from domain.paging.notifications.contact_types.registry import get_contact_type
from domain.paging.notifications.states import MessageState, PageState, get_message_state
from models import (
    Alert,
    Contact,
    Page,
    PageMessage,
)


class PageStatus(NamedTuple):
    """The state of a page, and its outcome at each contact."""

    state: PageState | None
    contacts: tuple[ContactOutcome, ...]


#: Status of pages whose records were deleted.
UNKNOWN_PAGE_STATUS = PageStatus(None, ())


def find_page_statuses(
    keys: Collection[str | None], *, session: Session
) -> Mapping[str | None, PageStatus]:
    """Return the statuses of pages, by key.

    Pages whose records were deleted are left out.
    """
    pages = session.execute(
        select(Page, Alert.status)
        .outerjoin(Alert, Alert.id == Page.alert_id)
        .where(Page.key.in_(keys))
    ).all()
    contacts = find_contact_outcomes({page.batch_id for page, _ in pages}, session=session)
    return {
        page.key: PageStatus(_get_page_state(page, status), contacts.get(page.batch_id or 0, ()))
        for page, status in pages
    }


def _get_page_state(page: Page, status: str | None) -> PageState:
    if page.outcome is not None:
        return PageState(page.outcome)
    # The worker might not yet have withdrawn the unsent pages of a resolved alert.
    if page.withdrawn_at is not None or (page.batch_id is None and status == RESOLVED):
        return PageState.WITHDRAWN
    return PageState.WAITING if page.batch_id is None else PageState.LEFT


def find_contact_outcomes(
    batches: Collection[int | None] | Select[int | None], *, session: Session
) -> Mapping[int, tuple[ContactOutcome, ...]]:
    """Return the outcomes of pages at each contact, by batch ID."""
    found: dict[int, tuple[ContactOutcome, ...]] = {}
    for message, contact in session.execute(
        select(PageMessage, Contact)
        .join(Contact, Contact.id == PageMessage.contact_id)
        .where(PageMessage.batch_id.in_(batches))
        .order_by(PageMessage.id)
    ):
        outcome = ContactOutcome(
            name=get_contact_type(contact.type).generic_name or contact.label,
            state=get_message_state(message.outcome, message.cancelled_because),
            at=message.ended_at,
            failures=message.tries,
            reason=_get_failure_reason(message),
            follows_at=message.due_at if message.ended_at is None else None,
        )
        batch = message.batch_id or 0
        found[batch] = (*found.get(batch, ()), outcome)
    return found


def _get_failure_reason(message: PageMessage) -> str | None:
    """Return the cancellation reason or last error of a message, or None if it was sent."""
    if message.outcome == MessageState.SENT:
        return None
    is_cancelled = message.outcome == MessageState.WITHDRAWN
    return (message.cancelled_because if is_cancelled else None) or message.last_error
