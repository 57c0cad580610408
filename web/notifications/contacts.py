"""What people do with their contacts, and maintainers with channels, each with its audit event."""

from dataclasses import dataclass
from time import monotonic, sleep

from domain.audit.events import Event, EventKind
from domain.database.locks import release_locks
from domain.errors import InvalidError
from domain.escalations.steps import Target, TargetKind
from domain.escalations.usage import check_unused
from domain.notifications import confirmation, contacts, recipients
from domain.notifications.contacts import (
    Address,
    ContactType,
    ContactView,
    NewContact,
    Owner,
    email_address,
)
from domain.notifications.outbox import OUTCOME_OF_MESSAGE
from domain.notifications.quiet_hours import written_time
from domain.notifications.recipients import PagingPreferences
from domain.notifications.states import MessageState
from web.extensions import db
from web.http.audit_events import record_event
from web.outgoing.apprise_processes import check_apprise_url
from web.services import now, services, settings

#: The worker sends a message within a moment; a service may take its time.
_PATIENCE_SECONDS = 12.0
_LOOK_SECONDS = 0.25


@dataclass(frozen=True, kw_only=True)
class SentMessage:
    """What came of a message so far."""

    is_sent: bool
    #: Why it was not sent, in the words of the service; None while it waits.
    problem: str | None = None


def checked_address(kind: str, text: str) -> Address:
    """Return an address after a check without the network, or raise InvalidError."""
    try:
        contact_type = ContactType(kind)
    except ValueError as error:
        message = "The type is email or apprise."
        raise InvalidError(message, field="type") from error
    if contact_type is ContactType.EMAIL:
        return email_address(text.strip())
    url = text.strip()
    release_locks(db.session())  # The process that reads the URL takes a moment to start.
    found = check_apprise_url(url, settings())
    return Address(type=contact_type, clear=url, shown=found.shown, lane=found.lane)


def create(owner: Owner, address: Address, label: str, *, is_confirmed: bool) -> ContactView:
    """Create a contact, or a channel; one that is not confirmed is sent a code."""
    new = NewContact(owner=owner, address=address, label=label, is_confirmed=is_confirmed)
    made = contacts.create_contact(new, session=db.session(), keyring=services().keyring, now=now())
    _record(EventKind.CONTACT_CREATED, EventKind.CHANNEL_CREATED, made)
    if not is_confirmed:
        send_code(made.id, owner)
    return made


def send_code(contact_id: int, owner: Owner) -> None:
    """Send a new code to a contact that is not confirmed."""
    confirmation.send_code(
        contact_id, owner, session=db.session(), keyring=services().keyring, now=now()
    )


def confirm(contact_id: int, code: str, owner: Owner) -> None:
    """Confirm a contact by its code, or raise InvalidError for the field `code`."""
    view, problem = confirmation.confirm_contact(
        contact_id, code, owner, session=db.session(), keyring=services().keyring, now=now()
    )
    if problem is not None:
        release_locks(db.session())  # The guess counts, whatever becomes of the request.
        raise InvalidError(problem, field="code")
    _record(EventKind.CONTACT_CONFIRMED, EventKind.CONTACT_CONFIRMED, view)


def send_test(contact_id: int, owner: Owner) -> SentMessage:
    """Send a test message through the worker, as pages are, and wait a while for its end."""
    message_id = confirmation.send_test(
        contact_id, owner, session=db.session(), keyring=services().keyring, now=now()
    )
    release_locks(db.session())
    end = monotonic() + _PATIENCE_SECONDS
    while monotonic() < end:
        row = services().connections.first(OUTCOME_OF_MESSAGE, {"message_id": message_id})
        if row is None:
            return SentMessage(is_sent=False, problem="it was deleted in the meantime")
        outcome, problem = row
        if outcome is not None:
            is_sent = outcome == MessageState.SENT.value
            return SentMessage(is_sent=is_sent, problem=None if is_sent else problem or outcome)
        sleep(_LOOK_SECONDS)
    return SentMessage(is_sent=False)


def delete(contact_id: int, owner: Owner) -> ContactView:
    """Delete a contact, or a channel, with what waits for it.

    Raises ConflictError for a channel that an escalation policy pages.
    """
    if owner.project_id is not None:
        target = Target(kind=TargetKind.CHANNEL, id=contact_id)
        check_unused(target, owner.project_id, session=db.session())
    gone = contacts.delete_contact(contact_id, owner, session=db.session(), now=now())
    _record(EventKind.CONTACT_REMOVED, EventKind.CHANNEL_REMOVED, gone)
    return gone


def change_preferences(user_id: int, wanted: PagingPreferences) -> None:
    """Change how a person wants to be paged."""
    recipients.change_preferences(user_id, wanted, session=db.session(), now=now())
    quiet = wanted.quiet_hours
    hours = f"{written_time(quiet.starts)} to {written_time(quiet.ends)}" if quiet else "none"
    details = {"quiet_hours": hours, "follow_ups": wanted.wants_follow_ups}
    kind = EventKind.PAGING_PREFERENCES_CHANGED
    record_event(Event(kind=kind, user_id=user_id, details=details))


def _record(of_person: EventKind, of_project: EventKind, view: ContactView) -> None:
    kind = of_project if view.user_id is None else of_person
    # Neither the label nor the address: other people read the audit log.
    details = {"type": view.type.value, "contact_id": view.id}
    if view.project_id is not None:
        details["project_id"] = view.project_id
    record_event(Event(kind=kind, user_id=view.user_id, details=details))
