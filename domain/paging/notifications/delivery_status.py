"""Records the outcomes of pages: accepted by a contact, or failed at all contacts.

The escalation that queued a page then processes the outcome
(`domain/paging/escalations/lifecycle.py`). Messages of a batch to several contacts may be completed
at the same time. Each transaction therefore locks the batch before it reads the outcomes at other
contacts.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import ColumnElement, and_, delete, exists, insert, literal, or_, select, true
from sqlalchemy.orm import Session

from domain.access.roles import Ability
from domain.alerts.handling.activity import ActivityEntryKind
from domain.core.database.bulk_statements import build_bulk_update
from domain.delivery.mail.outbox import NewEmail, queue_emails
from domain.paging.notifications.contact_types.registry import get_contact_type
from domain.paging.notifications.message_queue import (
    build_confirmed_contact_conditions,
    build_due_message_condition,
    queue_notice,
    schedule_contact_check,
)
from domain.paging.notifications.notice_checks import serialize_notice_subject
from domain.paging.notifications.page_queue import PageKind
from domain.paging.notifications.page_subjects import SUBJECT_PROJECT_ID, SubjectKind
from domain.paging.notifications.paging_settings import PagingSettings
from domain.paging.notifications.states import (
    MessageState,
    PageEvent,
    PageState,
    find_page_states_before,
)
from domain.projects.member_lists import find_users_with_ability
from domain.projects.views import Namespace
from models import (
    Alert,
    AlertNote,
    Contact,
    Incident,
    IncidentNote,
    Page,
    PageBatch,
    PageMessage,
    Project,
    User,
)

_MAX_MAINTAINERS = 50


def _build_outcome_change_conditions(
    event: PageEvent, outcome: PageState
) -> tuple[ColumnElement[bool], ...]:
    """Return SQL conditions that select pages to which an event can assign the given outcome."""
    before = find_page_states_before(outcome, event)
    stored = [each.value for each in before if each is PageState.FAILED]
    is_before = Page.outcome.is_(None)
    return (
        Page.kind == PageKind.FIRING.value,
        Page.withdrawn_at.is_(None),
        or_(is_before, Page.outcome.in_(stored)) if stored else is_before,
    )


def record_pages_accepted(batch_ids: Collection[int], *, session: Session, now: datetime) -> None:
    """Record that a contact accepted the pages in the given batches."""
    pages = Page.batch_id.in_(batch_ids)
    _store_outcome(PageState.ACCEPTED, PageEvent.TAKEN, pages, session=session, now=now)


def record_pages_failed(
    event: PageEvent, *pages: ColumnElement[bool], session: Session, now: datetime
) -> None:
    """Record that the selected pages currently reach nobody."""
    _store_outcome(PageState.FAILED, event, *pages, session=session, now=now)


def _store_outcome(
    outcome: PageState,
    event: PageEvent,
    *pages: ColumnElement[bool],
    session: Session,
    now: datetime,
) -> None:
    # No escalation waits for pages about incidents.
    news = Page.alert_id.is_not(None)
    session.execute(
        build_bulk_update(Page)
        .where(*pages, *_build_outcome_change_conditions(event, outcome))
        .values(outcome=outcome.value, outcome_at=now, has_news=news)
    )


def find_failed_batches(
    batch_ids: Iterable[int], *, session: Session, now: datetime
) -> Sequence[int]:
    """Lock batches, and return the IDs of batches that failed at all contacts.

    A batch has failed if it has pages without an outcome, no contact has accepted it, and all due
    messages were tried. The caller must store its own attempts first. If notification rules delay
    further messages of a failed batch, the delayed messages become due immediately, and the batch
    is not returned.
    """
    wanted = sorted(set(batch_ids))
    session.execute(
        select(PageBatch.id)
        .where(PageBatch.id.in_(wanted))
        .order_by(PageBatch.id)
        .with_for_update()
    )
    untried = and_(
        PageMessage.ended_at.is_(None), PageMessage.tries == 0, build_due_message_condition(now)
    )
    hopeful = exists().where(
        PageMessage.batch_id == PageBatch.id,
        or_(PageMessage.outcome == MessageState.SENT.value, untried),
    )
    waited_for = exists().where(
        Page.batch_id == PageBatch.id,
        *_build_outcome_change_conditions(PageEvent.ALL_FAILED, PageState.FAILED),
    )
    lost = session.scalars(
        select(PageBatch.id)
        .where(PageBatch.id.in_(wanted), ~hopeful, waited_for)
        .order_by(PageBatch.id)
    ).all()
    followed = _make_delayed_messages_due(lost, session=session, now=now) if lost else set()
    return [each for each in lost if each not in followed]


def _make_delayed_messages_due(
    batch_ids: Sequence[int], *, session: Session, now: datetime
) -> set[int | None]:
    """Make delayed messages of batches due now.

    Return the IDs of the batches with delayed messages.
    """
    later = (
        PageMessage.batch_id.in_(batch_ids),
        PageMessage.ended_at.is_(None),
        PageMessage.due_at > now,
    )
    found = session.execute(
        build_bulk_update(PageMessage)
        .where(*later)
        .values(due_at=now)
        .returning(PageMessage.contact_id, PageMessage.batch_id)
    ).all()
    # A fixed order prevents deadlocks between two transactions.
    for contact_id in sorted({row.contact_id for row in found}):
        schedule_contact_check(contact_id, now, session=session)
    return {row.batch_id for row in found}


def delete_waiting_messages(contact: Contact, *, session: Session, now: datetime) -> None:
    """Delete a contact's queued messages, and evaluate the pages that waited for the contact."""
    # The worker also locks a contact before its messages.
    session.execute(select(Contact.id).where(Contact.id == contact.id).with_for_update())
    is_waiting = PageMessage.contact_id == contact.id, PageMessage.ended_at.is_(None)
    batches = session.scalars(
        delete(PageMessage).where(*is_waiting).returning(PageMessage.batch_id)
    )
    known = [each for each in batches.all() if each is not None]
    contact.next_try_at = None
    failed = find_failed_batches(known, session=session, now=now)
    record_pages_failed(PageEvent.ALL_FAILED, Page.batch_id.in_(failed), session=session, now=now)


def add_page_activity_entries(
    text: str,
    *pages: ColumnElement[bool],
    user_id: int | None,
    name: str,
    session: Session,
    now: datetime,
) -> None:
    """Add an activity entry to each alert and incident that the given pages are about."""
    at = literal(now, AlertNote.created_at.type)
    of_all = {
        "user_id": literal(user_id, AlertNote.user_id.type),
        "user_name": literal(name),
        "kind": literal(ActivityEntryKind.PAGE.value),
        "text": literal(text),
        "created_at": at,
    }
    of_incidents = {"details": literal({}, IncidentNote.details.type), "updated_at": at}
    for notes, about, more in (
        (AlertNote, SubjectKind.ALERT, {}),
        (IncidentNote, SubjectKind.INCIDENT, of_incidents),
    ):
        number: ColumnElement[int | None] = about.column.label("id")
        named = select(number).where(*pages, about.column.is_not(None)).distinct()
        found = named.subquery()
        values = {f"{about}_id": found.c.id, **of_all, **more}
        session.execute(insert(notes).from_select([*values], select(*values.values())))


@dataclass(frozen=True, kw_only=True)
class MaintainerNotice:
    """A notice to the maintainers of a project, which is sent once for each key."""

    #: Unique key, which prevents a second notice to the same recipient.
    key: str
    subject: str
    #: Text between the greeting and the signature.
    text: str
    #: IDs of alerts. The notice is sent only while at least one of these alerts needs attention. A
    #: notice without alerts is always sent.
    alerts: tuple[int, ...] = ()


def notify_maintainers(
    project: Namespace,
    notice: MaintainerNotice,
    policy: PagingSettings,
    *,
    session: Session,
    now: datetime,
) -> None:
    """Queue a notice for the maintainers of a project, once for each key."""
    able = find_users_with_ability(
        true(), Ability.ADMIN_INTEGRATIONS, project, session=session, today=now.date()
    )
    people = session.execute(
        select(User.id, User.name, User.username, User.email)
        .where(User.id.in_(sorted(able)[:_MAX_MAINTAINERS]))
        .order_by(User.id)
    ).all()
    ability, of_project = Ability.ADMIN_INTEGRATIONS, [project.project_id or 0]
    signature = (
        f"-- \n{policy.instance_name}, {policy.base_url}\n"
        "You receive this message because you are a maintainer of the project.\n"
    )
    messages = {
        row.id: NewEmail(
            key=f"{notice.key}, to {row.id}",
            recipient=row.email,
            subject=notice.subject,
            text=f"Hello {row.name or row.username},\n\n{notice.text}\n\n{signature}",
            about=serialize_notice_subject(row.id, ability, of_project, alerts=notice.alerts),
        )
        for row in people
    }
    if policy.sends_mail:
        queue_emails([*messages.values()], session=session, keyring=policy.keyring, now=now)
    works = select(Contact.id, Contact.user_id).where(
        Contact.user_id.in_(messages),
        Contact.confirmed_at.is_not(None),
        Contact.address_ciphertext.is_not(None),
        Contact.failing_since.is_(None),
    )
    for contact_id, user_id in session.execute(works.order_by(Contact.id)).all():
        message = replace(messages[user_id or 0], key=notice.key)
        queue_notice(contact_id, message, session=session, now=now)


def report_failed_batches(
    contact: Contact,
    batches: Collection[int],
    reason: str,
    policy: PagingSettings,
    *,
    session: Session,
    now: datetime,
) -> None:
    """Report pages in batches that failed at all contacts.

    `contact` is the contact that failed last.
    """
    pages = Page.batch_id.in_(batches), Page.kind == PageKind.FIRING.value
    live = (*pages, Page.withdrawn_at.is_(None))
    note = "was not reached: {by} failed ({reason}). Further attempts follow."
    _report_contact_failure(note, contact, reason, policy, *live, session=session, now=now)


def deactivate_device(
    contact: Contact, policy: PagingSettings, *, session: Session, now: datetime
) -> None:
    """Deactivate a device whose push subscription has ended, and notify its user by email.

    The device stays in the list of contacts until the user deletes it or turns it on again.
    """
    if contact.confirmed_at is None:
        return
    contact.confirmed_at = None
    user = session.get(User, contact.user_id)
    if user is None or not policy.sends_mail:
        return
    others = select(Contact.id).where(*build_confirmed_contact_conditions(user.id)).limit(1)
    follows = (
        "You are still paged through your other contacts."
        if session.scalar(others) is not None
        else "You have no other contact. Until you add one, you are paged at this email address."
    )
    text = (
        f"Hello {user.name or user.username},\n\n"
        f"The device “{contact.label}” receives no more notifications, because its browser has "
        f"ended the subscription.\n{follows}\n\n"
        "To be paged on the device again, open this page on it and turn on notifications:\n"
        f"{policy.base_url}/-/user_settings/contacts\n\n"
        f"-- \n{policy.instance_name}, {policy.base_url}\n"
    )
    email = NewEmail(
        key=f"device {contact.id} ended at {now}",
        recipient=user.email,
        subject=f"{contact.label} receives no more notifications",
        text=text,
    )
    queue_emails([email], session=session, keyring=policy.keyring, now=now)


def report_abandoned_messages(
    contact: Contact,
    messages: Sequence[PageMessage],
    reason: str,
    policy: PagingSettings,
    *,
    session: Session,
    now: datetime,
) -> None:
    """Report that messages about alerts were given up."""
    batches = {each.batch_id for each in messages if each.batch_id is not None}
    if not batches:
        return
    live = Page.batch_id.in_(batches), Page.withdrawn_at.is_(None)
    note = "was not paged by {by}: {reason}. No further attempt is made."
    _report_contact_failure(note, contact, reason, policy, *live, session=session, now=now)


def add_given_up_activity_entries(
    contact: Contact, messages: Sequence[PageMessage], *, session: Session, now: datetime
) -> None:
    """Add an activity entry to the alerts in messages that an administrator gave up."""
    batches = {each.batch_id for each in messages if each.batch_id is not None}
    if not batches:
        return
    live = Page.batch_id.in_(batches), Page.withdrawn_at.is_(None)
    name, by = _describe_contact(contact, session)
    entry = f"was not paged by {by}: an administrator gave up. No further attempt is made."
    add_page_activity_entries(
        entry, *live, user_id=contact.user_id, name=name, session=session, now=now
    )


def _describe_contact(contact: Contact, session: Session) -> tuple[str, str]:
    """Return the name of a contact's owner, and the means by which the contact is paged."""
    user = session.get(User, contact.user_id) if contact.user_id is not None else None
    by = get_contact_type(contact.type).generic_name or f"the contact “{contact.label}”"
    return user.username if user else contact.label, by


def _report_contact_failure(
    text: str,
    contact: Contact,
    reason: str,
    policy: PagingSettings,
    *pages: ColumnElement[bool],
    session: Session,
    now: datetime,
) -> None:
    """Add the failure of a contact to the activity of alerts, and notify the maintainers.

    The maintainers receive one notice for each outage of a contact, regardless of the number of
    messages.
    """
    name, by = _describe_contact(contact, session)
    entry = text.format(by=by, reason=reason)
    add_page_activity_entries(
        entry, *pages, user_id=contact.user_id, name=name, session=session, now=now
    )
    concerned = (
        select(Project.id, Project.path)
        .select_from(Page)
        .outerjoin(Alert, Alert.id == Page.alert_id)
        .outerjoin(Incident, Incident.id == Page.incident_id)
        .join(Project, Project.id == SUBJECT_PROJECT_ID)
        .where(*pages)
        .distinct()
        .order_by(Project.id)
    )
    for project_id, path in session.execute(concerned).all():
        notice = MaintainerNotice(
            key=f"contact {contact.id} failing since {contact.failing_since}, project {project_id}",
            subject=f"Pages of {path} were not sent",
            text=(
                f"{name} could not be paged by {by} about alerts in {path}.\n"
                f"Last error: {reason}.\n\n"
                "The timeline of each alert shows who was affected, and who was paged instead.\n"
                f"You receive no further message until pages reach {name} again.\n\n"
                f"See {policy.base_url}/{path}/-/alerts"
            ),
        )
        project = Namespace(project_id=project_id, path=path)
        notify_maintainers(project, notice, policy, session=session, now=now)
