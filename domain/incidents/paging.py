"""Pages users about incidents.

As for alerts, the users' notification rules determine which contacts are used.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.audit.events import EventActor
from domain.core.clock import DOUBLE_SUBMISSION_WINDOW
from domain.incidents.timeline import NewTimelineEntry, TimelineEntry, add_timeline_entries
from domain.incidents.types import MAX_URGENCY, EntryKind
from domain.paging.notifications.batching import check_users_reachable
from domain.paging.notifications.page_queue import MANUAL_PAGE_PREFIX, NewPage, queue_pages
from domain.paging.notifications.paging_settings import PageReason
from domain.projects.views import ProjectView
from models import Incident, IncidentNote, User


def page_users_about_incident(
    work: UnitOfWork,
    project: ProjectView,
    incident: Incident,
    names: Sequence[str],
    *,
    actor: EventActor | None,
) -> Sequence[str]:
    """Page users about an incident, and return their names.

    If a user cannot currently be paged, raise InvalidError with the reason and send no pages.
    """
    is_critical = incident.urgency == MAX_URGENCY
    people = check_users_reachable(names, project, work, field="users", is_critical=is_critical)
    session, now = work.session, work.now
    pages = build_incident_pages(incident, people, actor=actor, rule=None, session=session, now=now)
    session.flush()  # Queueing the pages reads the stored severity.
    queue_pages(pages, session=session, now=now)
    return sorted(people.values())


def has_just_paged(incident_id: int, names: Collection[str], *, work: UnitOfWork) -> bool:
    """Return whether the acting user has just paged the same users about an incident."""
    entries = work.session.scalars(
        select(IncidentNote.text).where(
            *(IncidentNote.incident_id == incident_id, IncidentNote.user_id == work.actor.id),
            IncidentNote.kind == EntryKind.PAGED.value,
            IncidentNote.created_at > work.now - DOUBLE_SUBMISSION_WINDOW,
        )
    )
    return set(names) <= set(entries)


def build_incident_pages(
    incident: Incident,
    people: Mapping[int, str],
    *,
    actor: EventActor | None,
    rule: str | None,
    session: Session,
    now: datetime,
) -> Sequence[NewPage]:
    """Return a page for each user, and record the pages in the timeline.

    `rule` is the name of the rule that sends the pages, or None if a user requested them.
    """
    pages = [
        NewPage(
            key=(
                f"{'' if rule else MANUAL_PAGE_PREFIX}incident {incident.id}, user {each}, "
                f"{now.isoformat()}"
            ),
            project_id=incident.project_id,
            incident_id=incident.id,
            user_id=each,
            is_critical=incident.urgency == MAX_URGENCY,
        )
        for each in people
    ]
    because = {"rule": rule} if rule else {}
    entries = [
        NewTimelineEntry(
            incident_id=incident.id,
            kind=EntryKind.PAGED,
            text=people[page.user_id or 0],
            details={"page": page.key, **because},
        )
        for page in sorted(pages, key=lambda page: people[page.user_id or 0])
    ]
    add_timeline_entries(entries, actor=actor, session=session, now=now)
    return pages


def find_incident_page_reasons(
    incident_ids: Collection[int],
    /,
    *,
    user_id: int | None,
    channel_id: int | None,
    session: Session,
) -> Mapping[int, PageReason]:
    """Return the user or rule that last paged a user, for each incident.

    The result is empty if `channel_id` is given, since channels are never paged.
    """
    name = session.scalar(select(User.username).where(User.id == user_id))
    rows = session.scalars(
        select(IncidentNote)
        .where(
            IncidentNote.incident_id.in_(incident_ids), IncidentNote.kind == EntryKind.PAGED.value
        )
        .order_by(IncidentNote.id)
    )
    first: dict[int, datetime] = {}
    found: dict[int, PageReason] = {}
    for row in rows:
        paged_at = first.setdefault(row.incident_id, row.created_at)
        if channel_id is None and row.text == name:
            found[row.incident_id] = PageReason(
                policy="",
                step=0,
                steps=0,
                round=1,
                first_paged_at=paged_at,
                asked_by=TimelineEntry.model_validate(row).requested_by,
            )
    return found
