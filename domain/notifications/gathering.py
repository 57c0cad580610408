"""Gathers the waiting pages of each recipient into one batch, a message to each contact.

Several workers may gather at once: on Postgres each takes the recipients that no other one holds.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import ColumnElement, exists, func, or_, select
from sqlalchemy.orm import Session

from domain.accounts.users import ACTIVE, HUMAN
from domain.database.failures import is_lost, is_of_database
from domain.database.rows import slices, update_rows
from domain.due import NOW, later
from domain.notifications.contact_types.registry import CONTACT_TYPES
from domain.notifications.outcomes import recipient_cannot
from domain.notifications.paging import PageKind, earliest_leave
from domain.notifications.queueing import account_contact, confirmed_contacts, queue_batch
from domain.notifications.recipients import GATHERING_PAUSE, held_until, quiet_hours_of
from domain.notifications.rules import Concern, rules_of
from domain.notifications.states import PageEvent
from domain.notifications.subjects import PROJECT_ID, SEVERITY, of_projects
from domain.projects.access import Permissions, namespace_of, permissions_of, read_roles
from domain.projects.holders import lineages
from domain.projects.views import Namespace, Viewer
from models import Alert, Contact, Group, Incident, Page, PageBatch, PageRecipient, Project, User

_log = logging.getLogger("gatebell.pages")
#: Recipients of one transaction, few enough that writers of SQLite wait briefly.
_RECIPIENTS = 10
_AFTER_FAILURE = timedelta(minutes=1)
#: Where another transaction was in the way.
_AFTER_LOCK = timedelta(seconds=1)
_AT_ONCE = timedelta()
_NOT_ACTIVE = "is not active: not paged"
_NO_ACCESS = "has no access to the alerts of the project: not paged"
_NO_CONTACT = "could not be paged: there is no confirmed contact"


#: Whether there is something to gather, and whether there will be in a moment.
RECIPIENTS_ARE_DUE = exists().where(PageRecipient.due_at <= NOW)
RECIPIENTS_ARE_DUE_SOON = exists().where(PageRecipient.due_at <= later(NOW, GATHERING_PAUSE))


def gather_due(*, sends_mail: bool, session: Session, now: datetime) -> int:
    """Gather the pages of some recipients and return how many recipients those are.

    `sends_mail` says whether people without a contact get an e-mail at the address of the account.
    """
    recipients = session.scalars(
        select(PageRecipient)
        .where(PageRecipient.due_at <= now)
        .order_by(PageRecipient.due_at, PageRecipient.id)
        .limit(_RECIPIENTS)
        .with_for_update(skip_locked=True)
    ).all()
    for recipient in recipients:
        gathering = _Gathering(recipient, sends_mail=sends_mail, session=session, now=now)
        try:
            with session.begin_nested():
                gathering.run()
        except Exception as error:
            if is_lost(error):
                raise
            # Others must not wait for the one that cannot be gathered.
            _log.exception("pages could not be gathered", extra={"recipient_id": recipient.id})
            recipient.due_at = now + (_AFTER_LOCK if is_of_database(error) else _AFTER_FAILURE)
    return len(recipients)


class _Gathering:
    """The pages of one recipient that leave now."""

    def __init__(
        self, recipient: PageRecipient, *, sends_mail: bool, session: Session, now: datetime
    ) -> None:
        self._recipient = recipient
        self._sends_mail = sends_mail
        self._session = session
        self._now = now

    def run(self) -> None:
        worst = self._drop_what_may_not_be_seen()
        if worst:
            leave_at = _leave_at(self._recipient, worst, self._now)
            if leave_at is not None and leave_at > self._now:
                self._recipient.due_at = leave_at
                return
            self._leave(worst)
        self._recipient.due_at = self._session.scalar(
            select(func.min(Page.due_at)).where(*self._is_waiting())
        )

    def _is_waiting(self) -> tuple[ColumnElement[bool], ...]:
        return (
            Page.recipient_id == self._recipient.id,
            Page.batch_id.is_(None),
            Page.withdrawn_at.is_(None),
        )

    def _is_due(self) -> tuple[ColumnElement[bool], ...]:
        # What follows within the pause leaves as well, rather than half a minute later.
        return (*self._is_waiting(), Page.due_at <= self._now + GATHERING_PAUSE)

    def _drop_what_may_not_be_seen(self) -> Mapping[PageKind, int]:
        """Withdraw what the recipient may not see any more.

        Returns the kinds of what is left, each with the worst severity.
        """
        found = self._session.execute(
            select(PROJECT_ID, Page.kind, func.min(SEVERITY))
            .select_from(Page)
            .outerjoin(Alert, Alert.id == Page.alert_id)
            .outerjoin(Incident, Incident.id == Page.incident_id)
            .where(*self._is_due())
            .group_by(PROJECT_ID, Page.kind)
        ).all()
        seen = self._seen_projects({project_id for project_id, _, _ in found})
        hidden = {project_id for project_id, _, _ in found} - seen
        if hidden:
            self._cannot(self._why_not(), PageEvent.NOT_ALLOWED, of_projects(hidden))
        worst: dict[PageKind, int] = {}
        for project_id, kind, severity in found:
            if project_id in seen:
                worst[PageKind(kind)] = min(severity, worst.get(PageKind(kind), severity))
        return worst

    def _seen_projects(self, project_ids: Collection[int]) -> set[int]:
        projects = self._session.scalars(
            select(Project).where(Project.id.in_(project_ids), Project.deleted_at.is_(None))
        ).all()
        if self._recipient.contact_id is not None:
            channel = self._session.get_one(Contact, self._recipient.contact_id)
            used = lineages([each.id for each in projects], session=self._session)
            return {project_id for project_id, each in used.items() if each.uses(channel)}
        user = self._session.get_one(User, self._recipient.user_id)
        return seen_projects(user, projects, session=self._session, now=self._now)

    def _why_not(self) -> str:
        user_id = self._recipient.user_id
        user = self._session.get(User, user_id) if user_id is not None else None
        return _NOT_ACTIVE if user is not None and user.state != ACTIVE else _NO_ACCESS

    def _cannot(self, why: str, event: PageEvent, *conditions: ColumnElement[bool]) -> None:
        due = *self._is_due(), *conditions
        recipient_cannot(self._recipient, why, event, *due, session=self._session, now=self._now)
        self._withdraw(*conditions)

    def _withdraw(self, *conditions: ColumnElement[bool]) -> None:
        self._session.execute(
            update_rows(Page).where(*self._is_due(), *conditions).values(withdrawn_at=self._now)
        )

    def _leave(self, worst: Mapping[PageKind, int]) -> None:
        user_id, channel_id = self._recipient.user_id, self._recipient.contact_id
        if channel_id is not None:
            self._send({channel_id: _AT_ONCE})
        elif user_id is not None and not self._send_to_person(user_id):
            self._cannot(_NO_CONTACT, PageEvent.NO_CONTACT)
            return
        self._recipient.last_message_at = self._now
        if PageKind.FIRING in worst:
            self._recipient.last_page_at = self._now
            self._recipient.last_page_severity = worst[PageKind.FIRING]

    def _send(self, told: Mapping[int, timedelta], *conditions: ColumnElement[bool]) -> None:
        """Queue a message to each contact, so long after now, with due pages."""
        batch = PageBatch(recipient_id=self._recipient.id, created_at=self._now)
        self._session.add(batch)
        self._session.flush()  # for its id
        pages = update_rows(Page).where(*self._is_due(), *conditions)
        self._session.execute(pages.values(batch_id=batch.id))
        for contact_id, delay in told.items():
            due_at = self._now + delay if delay else None
            queue_batch(batch.id, [contact_id], session=self._session, now=self._now, due_at=due_at)

    def _send_to_person(self, user_id: int) -> bool:
        """Tell a person by the rules of theirs; return False if there is no contact."""
        contacts = _confirmed(user_id, session=self._session)
        rules = rules_of(user_id, session=self._session, now=self._now)
        everywhere = self._with_account(user_id, dict.fromkeys(contacts, _AT_ONCE), contacts)
        if not everywhere:
            return False
        if rules is None:
            self._send(everywhere)
            return True
        for kind, is_critical in self._session.execute(
            select(Page.kind, Page.is_critical).where(*self._is_due()).distinct()
        ).all():
            told = everywhere
            # What became of an alert is said where the alert was told.
            if kind == PageKind.FIRING.value:
                told = rules.told(Concern.CRITICAL if is_critical else Concern.OTHER, contacts)
                told = self._with_account(user_id, told, contacts)
            self._send(told, Page.kind == kind, Page.is_critical.is_(is_critical))
        return True

    def _with_account(
        self, user_id: int, told: Mapping[int, timedelta], contacts: Mapping[int, bool]
    ) -> Mapping[int, timedelta]:
        if not self._sends_mail or any(contacts[each] for each in told):
            return told
        account = account_contact(user_id, session=self._session, now=self._now)
        return {**told, account: _AT_ONCE}


def _confirmed(user_id: int, *, session: Session) -> Mapping[int, bool]:
    """Return the contacts of a person, and whether messages may reach them.

    If there is none, or all of them fail, the address of the account is told as well. Of e-mail it
    may be the server, and that address follows when an attempt has shown that it is not.
    """
    by_mail = [each.name for each in CONTACT_TYPES if each.uses_mail_server]
    is_on = or_(Contact.failing_since.is_(None), Contact.type.in_(by_mail))
    confirmed = session.execute(
        select(Contact.id, is_on).where(*confirmed_contacts(user_id)).order_by(Contact.id)
    ).all()
    return {contact_id: bool(may_reach) for contact_id, may_reach in confirmed}


def seen_projects(
    user: User, projects: Sequence[Project], *, session: Session, now: datetime
) -> set[int]:
    """Return the ids of the projects whose alerts a person sees."""
    if not _is_person(user):
        return set()
    permissions = permissions_of(_viewer(user, now), map(namespace_of, projects), session=session)
    return {each.id for each in projects if permissions.project(each).shows_alerts}


def _who_see_alerts(
    users: Collection[User], place: Namespace, *, session: Session, now: datetime
) -> set[int]:
    """Return the ids of the people who see the alerts of a project, or of a group."""
    row: Group | Project | None = (
        session.get(Group, place.id) if place.is_group else session.get(Project, place.id)
    )
    if row is None:
        return set()
    ids = [user.id for user in users]
    roles = read_roles(ids, [namespace_of(row)], today=now.date(), session=session)

    def sees(user: User) -> bool:
        permissions = Permissions(_viewer(user, now), roles[user.id])
        if isinstance(row, Project):
            return permissions.project(row).shows_alerts
        return permissions.group(row).shows_alerts

    return {user.id for user in users if sees(user)}


def _is_person(user: User) -> bool:
    return user.state == ACTIVE and user.kind == HUMAN


def _viewer(user: User, now: datetime) -> Viewer:
    return Viewer(user_id=user.id, is_admin=user.is_admin, today=now.date())


def _leave_at(
    recipient: PageRecipient, worst: Mapping[PageKind, int], now: datetime
) -> datetime | None:
    kind = PageKind.FIRING if PageKind.FIRING in worst else PageKind.FOLLOW_UP
    return earliest_leave(recipient, kind, severity=worst[kind], now=now)


class Reach(StrEnum):
    """Whether a page would leave; the value follows the name of a person in a sentence."""

    REACHABLE = "can be paged"
    #: The page leaves when they end.
    QUIET = "has quiet hours"
    NO_CONTACT = "has no confirmed contact"
    NO_ACCESS = "has no access to the alerts of the project"
    INACTIVE = "is not active"


def reachable(
    user_ids: Collection[int],
    place: Namespace,
    *,
    is_critical: bool,
    sends_mail: bool,
    session: Session,
    now: datetime,
) -> Mapping[int, Reach]:
    """Return whether pages about an alert of a project, or of one below a group, reach people.

    `sends_mail` says whether MAIL_URL is set: then the address of the account stands in for a
    missing contact. Accounts that do not exist are INACTIVE.
    """
    users: dict[int, User] = {}
    seeing, with_contact = set[int](), set[int | None]()
    quiet: dict[int | None, datetime | None] = {}
    for some in slices([*user_ids]):
        found = session.scalars(select(User).where(User.id.in_(some))).all()
        users |= {user.id: user for user in found}
        seeing |= _who_see_alerts([*filter(_is_person, found)], place, session=session, now=now)
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
            row.user_id: held_until(quiet_hours_of(row), is_critical=is_critical, now=now)
            for row in rows
        }

    def reach_of(user_id: int) -> Reach:
        if user_id not in users or not _is_person(users[user_id]):
            return Reach.INACTIVE
        if user_id not in seeing:
            return Reach.NO_ACCESS
        if not sends_mail and user_id not in with_contact:
            return Reach.NO_CONTACT
        return Reach.QUIET if quiet.get(user_id) else Reach.REACHABLE

    return {user_id: reach_of(user_id) for user_id in user_ids}
