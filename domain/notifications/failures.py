"""Says in the activity of alerts, and to maintainers, that pages were not sent."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from domain.notifications.contact_types.registry import contact_type
from domain.notifications.notices import Notice, tell_maintainers
from domain.notifications.outcomes import say_of_pages
from domain.notifications.paging import PageKind
from domain.notifications.policy import PagingPolicy
from domain.projects.views import Namespace
from models import Alert, Contact, Page, PageMessage, Project, User

_FAILED = "was not reached: {by} failed ({reason}). Further attempts are made."
_GIVEN_UP = "was not paged by {by}: {reason}. No further attempt is made."


def record_failed(
    contact: Contact,
    batches: Collection[int],
    reason: str,
    policy: PagingPolicy,
    *,
    session: Session,
    now: datetime,
) -> None:
    """Say that the pages of batches reach nobody, whose last contact to fail was this one."""
    pages = Page.batch_id.in_(batches), Page.kind == PageKind.FIRING.value
    live = (*pages, Page.withdrawn_at.is_(None))
    _say(_FAILED, contact, reason, *live, session=session, now=now)
    _tell(contact, reason, policy, *live, session=session, now=now)


def record_given_up(
    contact: Contact,
    messages: Sequence[PageMessage],
    reason: str,
    policy: PagingPolicy,
    *,
    session: Session,
    now: datetime,
) -> None:
    """Say that messages about alerts were given up."""
    batches = {each.batch_id for each in messages if each.batch_id is not None}
    if not batches:
        return
    live = Page.batch_id.in_(batches), Page.withdrawn_at.is_(None)
    _say(_GIVEN_UP, contact, reason, *live, session=session, now=now)
    _tell(contact, reason, policy, *live, session=session, now=now)


def _say(
    text: str,
    contact: Contact,
    reason: str,
    *pages: ColumnElement[bool],
    session: Session,
    now: datetime,
) -> None:
    say_of_pages(
        text.format(by=_by(contact), reason=reason),
        *pages,
        user_id=contact.user_id,
        name=_name(contact, session=session),
        session=session,
        now=now,
    )


def _by(contact: Contact) -> str:
    return contact_type(contact.type).spoken or f"the contact “{contact.label}”"


def _name(contact: Contact, *, session: Session) -> str:
    user = session.get(User, contact.user_id) if contact.user_id is not None else None
    return user.username if user else contact.label


def _tell(
    contact: Contact,
    reason: str,
    policy: PagingPolicy,
    *pages: ColumnElement[bool],
    session: Session,
    now: datetime,
) -> None:
    """Tell maintainers once of each outage of a contact, however many messages that concerns."""
    concerned = (
        select(Project.id, Project.path)
        .join(Alert, Alert.project_id == Project.id)
        .join(Page, Page.alert_id == Alert.id)
        .where(*pages)
        .distinct()
        .order_by(Project.id)
    )
    name, by = _name(contact, session=session), _by(contact)
    for project_id, path in session.execute(concerned).all():
        notice = Notice(
            key=f"contact {contact.id} failing since {contact.failing_since}, project {project_id}",
            subject=f"Pages of {path} were not sent",
            text=(
                f"{name} could not be paged by {by} about alerts of {path}.\n"
                f"The last error: {reason}.\n\n"
                "The activity of each alert says who is concerned, and who was paged instead.\n"
                "You get no further message until pages reach them again.\n\n"
                f"See {policy.base_url}/{path}/-/alerts"
            ),
        )
        project = Namespace(project_id=project_id, path=path)
        tell_maintainers(project, notice, policy, session=session, now=now)
