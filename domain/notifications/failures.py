"""Says in the activity of alerts, and to maintainers, that a page was not sent."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, insert, literal, null, select
from sqlalchemy.orm import Session

from domain.alerts.handling.activity import NoteKind
from domain.mail.outbox import NewMessage, queue_messages
from domain.notifications.contacts import ContactType
from domain.notifications.policy import PagingPolicy
from domain.projects.bots import maintainers_of
from models import Alert, AlertNote, Contact, Page, PageMessage, PageRecipient, User

_NO_CONTACT = "could not be paged: there is no confirmed contact"


def record_unreachable(
    recipient: PageRecipient, *pages: ColumnElement[bool], session: Session, now: datetime
) -> None:
    """Say in the activity of alerts that a person has no contact; `pages` selects the pages."""
    name = session.scalar(select(User.username).where(User.id == recipient.user_id)) or ""
    _add_entries(recipient.user_id, name, _NO_CONTACT, *pages, session=session, now=now)


def record_given_up(
    contact: Contact,
    messages: Sequence[PageMessage],
    reason: str,
    policy: PagingPolicy,
    *,
    session: Session,
    now: datetime,
) -> None:
    """Say in the activity of alerts, and to maintainers, that messages about them were given up.

    Maintainers are told once of each outage of a contact, however many messages that concerns.
    """
    batches = {each.batch_id for each in messages if each.batch_id is not None}
    is_given_up = Page.batch_id.in_(batches), Page.withdrawn_at.is_(None)
    concerned = select(Alert.project_id).join(Page, Page.alert_id == Alert.id).where(*is_given_up)
    project_ids = session.scalars(concerned.distinct()).all()
    if not project_ids:
        return
    user = session.get(User, contact.user_id) if contact.user_id is not None else None
    name = user.username if user else contact.label
    by = "e-mail" if contact.type == ContactType.EMAIL.value else f"the contact “{contact.label}”"
    text = f"was not paged by {by}: {reason}. No further attempt is made."
    _add_entries(contact.user_id, name, text, *is_given_up, session=session, now=now)
    if policy.sends_mail:
        notice = _Notice(contact, name, by, reason)
        for project_id in sorted(project_ids):
            _tell_maintainers(project_id, notice, policy, session=session, now=now)


def _add_entries(
    user_id: int | None,
    name: str,
    text: str,
    *pages: ColumnElement[bool],
    session: Session,
    now: datetime,
) -> None:
    """Add an entry to every alert of some pages, with one statement however many these are."""
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


class _Notice:
    """What maintainers are told of a contact that failed for too long."""

    def __init__(self, contact: Contact, name: str, by: str, reason: str) -> None:
        self.key = f"contact {contact.id} failing since {contact.failing_since or 'today'}"
        self.name, self.by, self.reason = name, by, reason


def _tell_maintainers(
    project_id: int, notice: _Notice, policy: PagingPolicy, *, session: Session, now: datetime
) -> None:
    path, people = maintainers_of(None, project_id, session=session, today=now.date())
    messages = [
        NewMessage(
            key=f"{notice.key}, project {project_id}, to {each.id}",
            recipient=each.email,
            subject=f"Pages of {path} were not sent",
            text=(
                f"Hello {each.name},\n\n"
                f"{notice.name} could not be paged by {notice.by} about alerts of {path}.\n"
                f"The last error: {notice.reason}.\n\n"
                "The activity of each alert says who is concerned. You get no further message\n"
                "until pages reach them again.\n\n"
                f"See {policy.base_url}/{path}/-/alerts\n\n"
                f"-- \n{policy.instance_name}, {policy.base_url}\n"
                "You receive this message because you are a maintainer of the project.\n"
            ),
        )
        for each in people
    ]
    queue_messages(messages, session=session, now=now)
