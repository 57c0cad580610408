"""Actions on the contacts of users, and on the notification channels of projects and groups.

The operator can manage the contacts of a user without confirmation codes. In this case,
`work.actor.id` is the ID of the user.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic, sleep

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.access.authorizations import lock_authorization
from domain.audit.events import EventKind, NamespaceIds
from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import InvalidError
from domain.core.keyring import Keyring
from domain.core.types.pagination import ListPage
from domain.paging.contacts.services.base import MessagingService
from domain.paging.contacts.services.registry import parse_address
from domain.paging.contacts.types import (
    Channel,
    ChannelQuery,
    ContactBody,
    ContactChange,
    ContactCodeBody,
    ContactPreferences,
    ContactPreferencesBody,
    ContactQuery,
    ContactTest,
)
from domain.paging.escalations.policies import check_no_policy_pages
from domain.paging.escalations.policy_steps import Target, TargetKind
from domain.paging.notifications import contacts, recipients
from domain.paging.notifications.contact_types.base import (
    ContactAddress,
    ParsedServiceUrl,
    UrlParser,
)
from domain.paging.notifications.contact_types.registry import get_contact_type
from domain.paging.notifications.contacts import Contact, ContactOwner, NewContact
from domain.paging.notifications.recipients import PagingPreferences, format_minutes_of_day
from domain.paging.notifications.states import MessageState
from domain.projects.row_ownership import (
    build_owner_columns,
    find_ancestor_group_ids,
    find_owner_group_paths,
)
from domain.projects.views import ProjectOrGroup

#: Maximum time to wait for the result of a test message. A service may take several seconds.
_TEST_RESULT_TIMEOUT_SECONDS = 12.0
_TEST_RESULT_POLL_SECONDS = 0.25


@dataclass(frozen=True, kw_only=True)
class ContactFunctions:
    """Functions that parse contact URLs and look up the outcomes of messages."""

    read_url: UrlParser
    #: Function that returns the outcome and the last error of a message. The outcome is None while
    #: the message is queued. The function returns None if the message was deleted.
    find_outcome: Callable[[int], Sequence[str | None] | None]


def find_contact_fields(
    work: UnitOfWork, contact: Contact
) -> tuple[MessagingService, Mapping[str, str]]:
    """Return the service of a contact, and the values of its fields, including secrets.

    Raise InvalidError if the contact is the email address of the account.
    """
    keyring = work.policy(Keyring)
    address = contacts.get_contact_address(contact.id, session=work.session, keyring=keyring)
    return parse_address(contact.type, contact.address, address)


@read_action("contacts.index")
def list_contacts(work: UnitOfWork, query: ContactQuery) -> ListPage[Contact]:
    """List the contacts of an account."""
    found = contacts.list_contacts(_build_user_owner(work), session=work.session)
    return ListPage(items=found[query.offset : query.offset + query.page_size], total=len(found))


@read_action("contacts.show")
def show_contact(work: UnitOfWork, contact_id: int) -> Contact:
    """Show a contact and its delivery status."""
    return contacts.get_contact(contact_id, _build_user_owner(work), session=work.session)


@action("contacts.create")
def create_contact(work: UnitOfWork, new: ContactBody) -> Contact:
    """Create a contact and send a confirmation code to it.

    Contacts created by the operator are confirmed immediately.
    """
    made = _create_contact(work, _build_user_owner(work), new, is_confirmed=work.actor.is_trusted)
    return made if made.confirmed_at else send_code(work, made.id)


@action("contacts.change")
def change_contact(work: UnitOfWork, contact_id: int, change: ContactChange) -> Contact:
    """Change a contact, and send a confirmation code if its address changes."""
    changed = _change_contact(work, contact_id, _build_user_owner(work), change)
    has_code = changed.confirmed_at is not None or changed.code_state is not None
    return changed if change.address is None or has_code else send_code(work, contact_id)


@action("contacts.send_code")
def send_code(work: UnitOfWork, contact_id: int) -> Contact:
    """Send a new confirmation code to an unconfirmed contact."""
    contacts.send_code(work, contact_id, _build_user_owner(work))
    return show_contact(work, contact_id)


@action("contacts.confirm")
def confirm_contact(work: UnitOfWork, contact_id: int, given: ContactCodeBody) -> Contact:
    """Confirm a contact with the code that was sent to it.

    Raise NotFoundError if you have no such contact, or InvalidError if the code is wrong.
    """
    was_confirmed = show_contact(work, contact_id).confirmed_at is not None
    owner = _build_user_owner(work)
    confirmed, problem = contacts.confirm_contact(work, contact_id, given.code, owner)
    if problem is not None:
        # This commits the failed attempt, although the request fails.
        commit_to_release_locks(work.session)
        raise InvalidError(problem, field="code")
    if not was_confirmed:
        record_contact_event(
            work, EventKind.CONTACT_CONFIRMED, EventKind.CONTACT_CONFIRMED, confirmed
        )
    return confirmed


@action("contacts.send_test", command="test")
def send_contact_test(work: UnitOfWork, contact_id: int) -> ContactTest:
    """Send a test message to a contact and return the outcome."""
    return _send_test_and_wait(work, contact_id, _build_user_owner(work))


@action("contacts.delete")
def delete_contact(work: UnitOfWork, contact_id: int) -> Contact:
    """Delete a contact and its queued messages."""
    return _delete_contact(work, contact_id, _build_user_owner(work))


@read_action("contacts.preferences")
def show_preferences(work: UnitOfWork) -> ContactPreferences:
    """Show your quiet hours and your follow-up setting."""
    return ContactPreferences.from_preferences(_get_preferences(work))


@action("contacts.change_preferences")
def change_preferences(work: UnitOfWork, change: ContactPreferencesBody) -> ContactPreferences:
    """Change your quiet hours or your follow-up setting."""
    present = _get_preferences(work)
    wanted = change.apply_to_preferences(present)
    if wanted == present:
        return ContactPreferences.from_preferences(present)
    user_id = _build_user_owner(work).user_id or 0
    recipients.store_preferences(user_id, wanted, session=work.session, now=work.now)
    quiet = wanted.quiet_hours
    hours = (
        f"{format_minutes_of_day(quiet.starts)} to {format_minutes_of_day(quiet.ends)}"
        if quiet
        else "none"
    )
    details = {"quiet_hours": hours, "follow_ups": wanted.wants_follow_ups}
    work.record_audit_event(EventKind.PAGING_PREFERENCES_CHANGED, user_id=user_id, details=details)
    return ContactPreferences.from_preferences(wanted)


@read_action("notification_channels.index")
def list_channels(
    work: UnitOfWork, holder: ProjectOrGroup, query: ChannelQuery
) -> ListPage[Channel]:
    """List the channels of a project or group."""
    found = [*contacts.list_contacts(_build_namespace_owner(holder), session=work.session)]
    if query.include_ancestor_groups:
        above = find_ancestor_group_ids(holder, session=work.session)
        found += contacts.list_group_channels(above, session=work.session)
    part = found[query.offset : query.offset + query.page_size]
    return ListPage(items=_build_channels(work, *part), total=len(found))


@read_action("notification_channels.show")
def show_channel(work: UnitOfWork, holder: ProjectOrGroup, channel_id: int) -> Channel:
    """Show a channel and its delivery status."""
    found = contacts.get_contact(channel_id, _build_namespace_owner(holder), session=work.session)
    return _build_channels(work, found)[0]


@action("notification_channels.create")
def create_channel(work: UnitOfWork, holder: ProjectOrGroup, new: ContactBody) -> Channel:
    """Create a notification channel."""
    made = _create_contact(work, _build_namespace_owner(holder), new, is_confirmed=True)
    return _build_channels(work, made)[0]


@action("notification_channels.change")
def change_channel(
    work: UnitOfWork, holder: ProjectOrGroup, channel_id: int, change: ContactChange
) -> Channel:
    """Change a notification channel."""
    changed = _change_contact(work, channel_id, _build_namespace_owner(holder), change)
    return _build_channels(work, changed)[0]


@action("notification_channels.send_test", command="test")
def send_channel_test(work: UnitOfWork, holder: ProjectOrGroup, channel_id: int) -> ContactTest:
    """Send a test message to a channel and return the outcome."""
    return _send_test_and_wait(work, channel_id, _build_namespace_owner(holder))


@action("notification_channels.delete")
def delete_channel(work: UnitOfWork, holder: ProjectOrGroup, channel_id: int) -> Channel:
    """Delete a channel and its queued messages.

    Raise ConflictError if the channel is used by an escalation policy of the project or group, or
    of a project or group below it.
    """
    target = Target(kind=TargetKind.CHANNEL, id=channel_id)
    check_no_policy_pages(target, holder, session=work.session)
    gone = _delete_contact(work, channel_id, _build_namespace_owner(holder))
    return _build_channels(work, gone)[0]


def _build_user_owner(work: UnitOfWork) -> ContactOwner:
    return ContactOwner(user_id=work.actor.id)


def _build_namespace_owner(holder: ProjectOrGroup) -> ContactOwner:
    return ContactOwner(**build_owner_columns(holder))


def _build_channels(work: UnitOfWork, *contacts: Contact) -> Sequence[Channel]:
    groups = find_owner_group_paths(contacts, session=work.session)
    return [Channel(**dict(each), group=groups.get(each.group_id)) for each in contacts]


def _create_contact(
    work: UnitOfWork, owner: ContactOwner, contact_body: ContactBody, *, is_confirmed: bool
) -> Contact:
    address = _validate_address(work, contact_body.type, contact_body.address)
    made = contacts.create_contact(
        NewContact(
            owner=owner,
            address=address,
            label=contact_body.label,
            is_confirmed=is_confirmed,
            authorization_id=None if owner.user_id is None else lock_authorization(work),
        ),
        session=work.session,
        keyring=work.policy(Keyring),
        now=work.now,
    )
    record_contact_event(work, EventKind.CONTACT_CREATED, EventKind.CHANNEL_CREATED, made)
    return made


def _validate_address(work: UnitOfWork, type_name: str, text: str) -> ContactAddress:
    means, contact_type = work.policy(ContactFunctions), get_contact_type(type_name)
    if not contact_type.is_entered:
        message = "Only a device can change its own address. Turn on notifications on the device."
        raise InvalidError(message, field="address")

    def read_url(url: str) -> ParsedServiceUrl:
        commit_to_release_locks(work.session)  # Parsing a URL starts a process, which is slow.
        return means.read_url(url)

    return contact_type.validate_address(text.strip(), read_url=read_url)


def _change_contact(
    work: UnitOfWork, contact_id: int, owner: ContactOwner, change: ContactChange
) -> Contact:
    present = contacts.get_contact(contact_id, owner, session=work.session)
    address = None
    if change.address is not None:
        address = _validate_address(work, present.type, change.address)
    is_confirmed = owner.user_id is None or work.actor.is_trusted
    changed = contacts.change_contact(
        work, contact_id, owner, address=address, label=change.label, is_confirmed=is_confirmed
    )
    if changed != present or address is not None:
        record_contact_event(work, EventKind.CONTACT_CHANGED, EventKind.CHANNEL_CHANGED, changed)
    return changed


def _send_test_and_wait(work: UnitOfWork, contact_id: int, owner: ContactOwner) -> ContactTest:
    """Send a test message through the worker that sends pages, and wait for the outcome."""
    message_id = contacts.send_test(work, contact_id, owner)
    commit_to_release_locks(work.session)
    find_outcome = work.policy(ContactFunctions).find_outcome
    end = monotonic() + _TEST_RESULT_TIMEOUT_SECONDS
    while monotonic() < end:
        found = find_outcome(message_id)
        if found is None:
            return ContactTest(delivered=False, error="the message was deleted")
        outcome, problem = found
        if outcome == MessageState.SENT.value:
            return ContactTest(delivered=True, error=None)
        if outcome is not None:
            return ContactTest(delivered=False, error=problem or outcome)
        sleep(_TEST_RESULT_POLL_SECONDS)
    return ContactTest(delivered=None, error=None)


def _delete_contact(work: UnitOfWork, contact_id: int, owner: ContactOwner) -> Contact:
    gone = contacts.delete_contact(contact_id, owner, session=work.session, now=work.now)
    record_contact_event(work, EventKind.CONTACT_REMOVED, EventKind.CHANNEL_REMOVED, gone)
    return gone


def _get_preferences(work: UnitOfWork) -> PagingPreferences:
    return recipients.get_preferences(_build_user_owner(work).user_id or 0, session=work.session)


def record_contact_event(
    work: UnitOfWork, of_person: EventKind, of_project: EventKind, contact: Contact
) -> None:
    """Record an audit event about a user's contact, or a channel of a project or group."""
    kind = of_project if contact.user_id is None else of_person
    # Other users can read the audit log, so it contains neither the label nor the address.
    details: dict[str, object] = {"type": contact.type, "contact_id": contact.id}
    if contact.project_id is not None:
        details["project_id"] = contact.project_id
    if contact.group_id is not None:
        details["group_id"] = contact.group_id
    place = NamespaceIds(project_id=contact.project_id, group_id=contact.group_id)
    work.record_audit_event(kind, user_id=contact.user_id, details=details, event_namespace=place)
