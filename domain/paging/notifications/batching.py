"""Combines the waiting pages of each recipient into a batch, with a message to each contact.

Several workers can batch pages at the same time. In Postgres, each worker skips the recipients that
other workers have locked.
"""

import logging
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import ColumnElement, exists, func, or_, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.access.roles import Ability
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.database.bulk_statements import build_bulk_update, split_into_batches
from domain.core.database.failures import is_connection_lost, is_database_failure
from domain.core.due_time_sql import NOW, build_time_from_now
from domain.core.errors import InvalidError
from domain.paging.notifications.contact_types.registry import CONTACT_TYPES
from domain.paging.notifications.delivery_status import (
    add_page_activity_entries,
    record_pages_failed,
)
from domain.paging.notifications.message_queue import (
    build_confirmed_contact_conditions,
    get_or_create_account_contact,
    queue_batch,
)
from domain.paging.notifications.page_queue import PageKind, find_pause_end
from domain.paging.notifications.paging_settings import PagingSettings
from domain.paging.notifications.recipients import BATCHING_PAUSE, find_hold_end, get_quiet_hours
from domain.paging.notifications.rules import AlertSelection, find_user_rules
from domain.paging.notifications.send_checks import (
    Recipient,
    apply_check_results,
    build_viewer,
    check_pages,
    get_recipient,
    is_active_human,
)
from domain.paging.notifications.states import PageEvent
from domain.projects.access import ViewerPermissions, build_namespace, read_roles
from domain.projects.member_lists import find_users_with_ability
from domain.projects.views import Namespace, ProjectView
from models import Contact, Group, Page, PageBatch, PageRecipient, Project, User
from models.case_folding import fold_text

_log = logging.getLogger("gatebell.pages")
#: Maximum number of recipients in a transaction. Transactions are short because writers block each
#: other in SQLite.
_RECIPIENT_BATCH_SIZE = 10
_RETRY_DELAY = timedelta(minutes=1)
#: Pause after a database failure, such as a timeout while waiting for a lock.
_LOCK_RETRY_DELAY = timedelta(seconds=1)
_NO_DELAY = timedelta()
#: Conditions that are true if pages can be batched now, or within the batching pause.
RECIPIENTS_ARE_DUE = exists().where(PageRecipient.due_at <= NOW)
RECIPIENTS_ARE_DUE_SOON = exists().where(
    PageRecipient.due_at <= build_time_from_now(NOW, BATCHING_PAUSE)
)


def batch_due_pages(policy: PagingSettings, *, session: Session, now: datetime) -> int:
    """Batch the pages of due recipients, and return the number of recipients."""
    recipients = session.scalars(
        select(PageRecipient)
        .where(PageRecipient.due_at <= now)
        .order_by(PageRecipient.due_at, PageRecipient.id)
        .limit(_RECIPIENT_BATCH_SIZE)
        .with_for_update(skip_locked=True)
    ).all()
    for recipient in recipients:
        gathering = _RecipientBatch(recipient, policy, session=session, now=now)
        try:
            with session.begin_nested():
                gathering.batch_pages()
        except Exception as error:
            if is_connection_lost(error):
                raise
            # Other recipients must not wait for a recipient whose batching fails.
            _log.exception(
                "Page preparation failed; the worker will retry.",
                extra={"event": "page.preparation_failed", "recipient_id": recipient.id},
            )
            recipient.due_at = now + (
                _LOCK_RETRY_DELAY if is_database_failure(error) else _RETRY_DELAY
            )
    return len(recipients)


class _RecipientBatch:
    """Combines the due pages of a recipient into batches."""

    def __init__(
        self, recipient: PageRecipient, policy: PagingSettings, *, session: Session, now: datetime
    ) -> None:
        self._recipient = recipient
        self._policy = policy
        self._session = session
        self._now = now

    def batch_pages(self) -> None:
        recipient = get_recipient(self._recipient, session=self._session)
        self._delay_for_quiet_hours(recipient)
        verdicts = check_pages(
            recipient,
            *self._build_due_page_conditions(),
            policy=self._policy,
            session=self._session,
            now=self._now,
        )
        apply_check_results(verdicts, recipient, session=self._session, now=self._now)
        if worst := verdicts.worst_severities:
            kind = PageKind.FIRING if PageKind.FIRING in worst else PageKind.FOLLOW_UP
            leave_at = find_pause_end(self._recipient, kind, severity=worst[kind], now=self._now)
            if leave_at is not None and leave_at > self._now:
                self._recipient.due_at = leave_at
                return
            self._send_due_pages(worst, recipient)
        self._recipient.due_at = self._session.scalar(
            select(func.min(Page.due_at)).where(*self._build_waiting_page_conditions())
        )

    def _build_waiting_page_conditions(self) -> tuple[ColumnElement[bool], ...]:
        return (
            Page.recipient_id == self._recipient.id,
            Page.batch_id.is_(None),
            Page.withdrawn_at.is_(None),
        )

    def _build_due_page_conditions(self) -> tuple[ColumnElement[bool], ...]:
        # Pages that are due within the pause are included, rather than sent half a minute later.
        return (*self._build_waiting_page_conditions(), Page.due_at <= self._now + BATCHING_PAUSE)

    def _delay_for_quiet_hours(self, recipient: Recipient) -> None:
        """Postpone pages to the end of the user's current quiet hours.

        This applies to pages that were held back, since the quiet hours may have started in the
        meantime.
        """
        quiet = get_quiet_hours(self._recipient)
        for is_critical in (False, True):
            until = find_hold_end(quiet, is_critical=is_critical, now=self._now)
            if until is None or until <= self._now + BATCHING_PAUSE:
                continue
            waiting = (
                *self._build_due_page_conditions(),
                Page.held_by.is_not(None),
                Page.is_critical.is_(is_critical),
            )
            add_page_activity_entries(
                "has quiet hours, so the page that was held back waits until they end",
                *waiting,
                user_id=recipient.user_id,
                name=recipient.name,
                session=self._session,
                now=self._now,
            )
            self._session.execute(
                build_bulk_update(Page).where(*waiting).values(due_at=until, held_by=None)
            )

    def _send_due_pages(self, worst: Mapping[PageKind, int], recipient: Recipient) -> None:
        if recipient.channel is not None:
            self._queue_messages({recipient.channel.id: _NO_DELAY})
        elif recipient.user is not None and not self._page_user(recipient.user.id):
            self._fail_unreachable_pages(recipient)
            return
        self._recipient.last_message_at = self._now
        if PageKind.FIRING in worst:
            self._recipient.last_page_at = self._now
            self._recipient.last_page_severity = worst[PageKind.FIRING]

    def _fail_unreachable_pages(self, recipient: Recipient) -> None:
        due = self._build_due_page_conditions()
        add_page_activity_entries(
            "could not be paged: there is no confirmed contact",
            *due,
            Page.kind == PageKind.FIRING.value,
            user_id=recipient.user_id,
            name=recipient.name,
            session=self._session,
            now=self._now,
        )
        record_pages_failed(PageEvent.NO_CONTACT, *due, session=self._session, now=self._now)
        self._session.execute(build_bulk_update(Page).where(*due).values(withdrawn_at=self._now))

    def _queue_messages(
        self, told: Mapping[int, timedelta], *conditions: ColumnElement[bool]
    ) -> None:
        """Queue the due pages as a message to each contact, after the contact's delay."""
        batch = PageBatch(recipient_id=self._recipient.id, created_at=self._now)
        self._session.add(batch)
        self._session.flush()  # The flush assigns the ID.
        pages = build_bulk_update(Page).where(*self._build_due_page_conditions(), *conditions)
        self._session.execute(pages.values(batch_id=batch.id, held_by=None))
        for contact_id, delay in told.items():
            due_at = self._now + delay if delay else None
            queue_batch(batch.id, [contact_id], session=self._session, now=self._now, due_at=due_at)

    def _page_user(self, user_id: int) -> bool:
        """Page a user according to the user's rules.

        Return False if the user has no contact.
        """
        contacts = _find_confirmed_contacts(user_id, session=self._session)
        rules = find_user_rules(user_id, session=self._session, now=self._now)
        everywhere = self._add_account_contact(
            user_id, dict.fromkeys(contacts, _NO_DELAY), contacts
        )
        if not everywhere:
            return False
        if rules is None:
            self._queue_messages(everywhere)
            return True
        for kind, is_critical in self._session.execute(
            select(Page.kind, Page.is_critical).where(*self._build_due_page_conditions()).distinct()
        ).all():
            told = everywhere
            # Follow-ups do not depend on rules. They are sent to the contacts that received the
            # page.
            if kind == PageKind.FIRING.value:
                told = rules.find_contact_delays(
                    AlertSelection.CRITICAL if is_critical else AlertSelection.OTHER, contacts
                )
                told = self._add_account_contact(user_id, told, contacts)
            self._queue_messages(told, Page.kind == kind, Page.is_critical.is_(is_critical))
        return True

    def _add_account_contact(
        self, user_id: int, told: Mapping[int, timedelta], contacts: Mapping[int, bool]
    ) -> Mapping[int, timedelta]:
        if not self._policy.sends_mail or any(contacts[each] for each in told):
            return told
        account = get_or_create_account_contact(user_id, session=self._session, now=self._now)
        return {**told, account: _NO_DELAY}


def _find_confirmed_contacts(user_id: int, *, session: Session) -> Mapping[int, bool]:
    """Return the confirmed contacts of a user, and whether messages can reach each contact.

    If no contact is reachable, messages are also sent to the account's address. A failing email
    contact counts as reachable, since the mail server may be the cause. In this case, the account's
    address is used only after another attempt at the contact has failed.
    """
    by_mail = [each.name for each in CONTACT_TYPES if each.uses_mail_server]
    is_on = or_(Contact.failing_since.is_(None), Contact.type.in_(by_mail))
    confirmed = session.execute(
        select(Contact.id, is_on)
        .where(*build_confirmed_contact_conditions(user_id))
        .order_by(Contact.id)
    ).all()
    return {contact_id: bool(may_reach) for contact_id, may_reach in confirmed}


def _find_users_with_alert_access(
    users: Collection[User], namespace: Namespace, *, session: Session, now: datetime
) -> set[int]:
    """Return the IDs of the users who can see the alerts of a project or group."""
    row: Group | Project | None = (
        session.get(Group, namespace.id)
        if namespace.is_group
        else session.get(Project, namespace.id)
    )
    if row is None:
        return set()
    ids = [user.id for user in users]
    roles = read_roles(ids, [build_namespace(row)], today=now.date(), session=session)

    def has_alert_access(user: User) -> bool:
        permissions = ViewerPermissions(build_viewer(user, now), roles[user.id])
        if isinstance(row, Project):
            return permissions.build_project_view(row).can_see_alerts
        return permissions.build_group_view(row).can_see_alerts

    return {user.id for user in users if has_alert_access(user)}


class UserReachability(StrEnum):
    """Reachability of a user, as a phrase that follows the username, such as `is not active`."""

    REACHABLE = "can be paged"
    #: Reachability of a user who is paged when the quiet hours end.
    QUIET = "has quiet hours"
    NO_CONTACT = "has no confirmed contact"
    NO_ACCESS = "has no access to the alerts of the project"
    INACTIVE = "is not active"


def find_reachability(
    user_ids: Collection[int],
    namespace: Namespace,
    *,
    is_critical: bool,
    sends_mail: bool,
    session: Session,
    now: datetime,
) -> Mapping[int, UserReachability]:
    """Return the reachability of users for alerts in a project or below a group, by user ID.

    `sends_mail` is true if MAIL_URL is set. In this case, the account's address replaces a missing
    contact. Accounts that do not exist are INACTIVE.
    """
    users: dict[int, User] = {}
    seeing, with_contact = set[int](), set[int | None]()
    quiet: dict[int | None, datetime | None] = {}
    for some in split_into_batches([*user_ids]):
        found = session.scalars(select(User).where(User.id.in_(some))).all()
        users |= {user.id: user for user in found}
        seeing |= _find_users_with_alert_access(
            [*filter(is_active_human, found)], namespace, session=session, now=now
        )
        with_contact |= set(
            session.scalars(
                select(Contact.user_id).where(
                    Contact.user_id.in_(some),
                    Contact.confirmed_at.is_not(None),
                    Contact.address_ciphertext.is_not(None),
                )
            )
        )
        rows = session.scalars(select(PageRecipient).where(PageRecipient.user_id.in_(some)))
        quiet |= {
            row.user_id: find_hold_end(get_quiet_hours(row), is_critical=is_critical, now=now)
            for row in rows
        }

    def get_reachability(user_id: int) -> UserReachability:
        if user_id not in users or not is_active_human(users[user_id]):
            return UserReachability.INACTIVE
        if user_id not in seeing:
            return UserReachability.NO_ACCESS
        if not sends_mail and user_id not in with_contact:
            return UserReachability.NO_CONTACT
        return UserReachability.QUIET if quiet.get(user_id) else UserReachability.REACHABLE

    return {user_id: get_reachability(user_id) for user_id in user_ids}


def check_users_reachable(
    names: Collection[str], project: ProjectView, work: UnitOfWork, *, field: str, is_critical: bool
) -> Mapping[int, str]:
    """Return the names of users who can be paged now, by user ID.

    Raise InvalidError with the reason if one of the users cannot be paged.
    """
    keys = {
        fold_text(replace_unstorable_characters(name).strip().removeprefix("@")): name
        for name in names
    }
    people = find_users_with_ability(
        User.username_key.in_(keys),
        Ability.READ_ALERTS,
        project.namespace,
        session=work.session,
        today=work.now.date(),
    )
    missing = keys.keys() - {fold_text(name) for name in people.values()}
    if missing:
        name = keys[min(missing)].strip()[:100]
        message = f'"{name}" is not a member who can see the alerts of this project.'
        raise InvalidError(message, field=field)
    found = find_reachability(
        people,
        project.namespace,
        is_critical=is_critical,
        sends_mail=bool(work.settings.mail_url),
        session=work.session,
        now=work.now,
    )
    for user_id, reach in sorted(found.items()):
        if reach is not UserReachability.REACHABLE:
            message = f"@{people[user_id]} {reach.value}, so no page was sent."
            raise InvalidError(message, field=field)
    return people
