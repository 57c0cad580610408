"""Acknowledges alerts and incidents for users who open the link in a message."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from itsdangerous import BadData, URLSafeSerializer
from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.accounts.users import ACTIVE, HUMAN
from domain.alerts.handling.status import StatusChange, change_statuses_in_bulk
from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.parsing.incoming_alert import Severity
from domain.audit.events import EventActor, EventKind
from domain.core.errors import ForbiddenError, GoneError, InvalidError, NotFoundError
from domain.paging.notifications.page_queue import PageKind
from domain.paging.notifications.page_subjects import (
    PageSubject,
    SubjectKind,
    format_title,
    get_severity_rank,
)
from domain.projects.access import build_namespace, read_permissions
from domain.projects.views import ProjectView, Viewer
from models import Alert, Incident, Page, PageBatch, PageRecipient, Project, User

#: Lifetime of a link. Users should not acknowledge older pages without looking at the alerts.
LINK_LIFETIME = timedelta(days=3)
_SIGNING_SALT = "acknowledge from a message"
_TRIGGERED = "triggered"
VIA_MESSAGE_LINK = "from the link in a message"
#: Maximum number of alerts and incidents on the web page. Other alerts and incidents are selected
#: by project.
_MAX_LISTED_SUBJECTS = 50


@dataclass(frozen=True, kw_only=True)
class AcknowledgementLink:
    """The content of a link: the user who received the pages, and a range of batches."""

    user_id: int
    #: IDs of the first and last batch of the message. The link refers to all of the user's batches
    #: in this range.
    first_batch_id: int
    last_batch_id: int


def sign_link(link: AcknowledgementLink, keys: Sequence[str], *, now: datetime) -> str:
    """Sign a link with the first of `keys`, and return the signed link as a string."""
    expires = int((now + LINK_LIFETIME).timestamp())
    parts = [link.user_id, link.first_batch_id, link.last_batch_id, expires]
    return str(_build_serializer(keys).dumps(parts))


def parse_signed_link(text: str, keys: Sequence[str], *, now: datetime) -> AcknowledgementLink:
    """Verify and parse a signed link.

    Raise NotFoundError if the signature is wrong, or GoneError if the link has expired.
    """
    try:
        parts = _build_serializer(keys).loads(text)
    except BadData as error:
        message = "This link is invalid. Check that you copied the entire link."
        raise NotFoundError(message) from error
    user_id, first, last, expires = map(int, parts)
    if datetime.fromtimestamp(expires, tz=UTC) <= now:
        raise GoneError("This link has expired. Sign in to acknowledge the alert.")
    return AcknowledgementLink(user_id=user_id, first_batch_id=first, last_batch_id=last)


def _build_serializer(keys: Sequence[str]) -> URLSafeSerializer:
    # The library signs with the last key.
    return URLSafeSerializer(list(reversed(keys)), salt=_SIGNING_SALT)


@dataclass(frozen=True, kw_only=True)
class PagedSubject:
    """An alert or incident that a message is about."""

    about: PageSubject
    title: str
    severity: Severity
    status: str
    project_id: int
    path: str
    iid: int

    @property
    def is_incident(self) -> bool:
        """True if the subject is an incident."""
        return self.about.subject is SubjectKind.INCIDENT

    @property
    def needs_attention(self) -> bool:
        """True if the alert or incident needs attention."""
        return self.status == _TRIGGERED


@dataclass(frozen=True, kw_only=True)
class PagedProject:
    """A project, with its alerts and incidents that need attention."""

    id: int
    path: str
    #: Listed alerts and incidents, the most severe first.
    things: tuple[PagedSubject, ...]
    #: Number of alerts and incidents that are not listed.
    others: int


@dataclass(frozen=True, kw_only=True)
class LinkedSubjects:
    """The alerts and incidents that a link refers to."""

    user: EventActor
    #: Number of alerts and incidents that still need attention.
    waiting: int
    #: True if at least one alert needs attention. Only alerts can be snoozed.
    has_alerts: bool
    #: Projects with alerts or incidents that need attention, the most severe first.
    projects: tuple[PagedProject, ...]
    #: Most severe alerts and incidents that no longer need attention.
    settled: tuple[PagedSubject, ...]
    #: Number of the link's alerts and incidents that the user can still see.
    total: int
    #: Noun for the subjects of the link: `alert`, `incident`, or `problem` for both.
    noun: str


@dataclass(frozen=True, kw_only=True)
class LinkSelection:
    """The alerts and incidents that a user selected on the web page."""

    things: frozenset[PageSubject] = frozenset()
    #: IDs of projects whose unlisted alerts and incidents are also selected.
    others_of: frozenset[int] = frozenset()
    #: Alerts and incidents that the web page listed, including unselected alerts and incidents.
    named: frozenset[PageSubject] = frozenset()

    def includes_subject(self, subject: PagedSubject) -> bool:
        """Return whether an alert or incident is selected."""
        is_other = subject.project_id in self.others_of and subject.about not in self.named
        return subject.about in self.things or is_other


def find_linked_subjects(
    link: AcknowledgementLink, *, session: Session, now: datetime
) -> LinkedSubjects:
    """Return the alerts and incidents that a link refers to.

    Raise ForbiddenError if the user is not allowed to acknowledge these alerts and incidents.
    """
    user, _, things = _load_linked_subjects(link, session=session, now=now)
    ordered = sorted(things, key=lambda each: (each.severity.rank, each.about.id))
    waiting = [each for each in ordered if each.needs_attention]
    return LinkedSubjects(
        user=user,
        waiting=len(waiting),
        has_alerts=any(not each.is_incident for each in waiting),
        projects=tuple(_group_by_project(waiting)),
        settled=tuple(each for each in ordered if not each.needs_attention)[:_MAX_LISTED_SUBJECTS],
        total=len(things),
        noun=_format_noun({each.about.subject for each in things}),
    )


def _format_noun(subjects: Collection[SubjectKind]) -> str:
    return "problem" if len(subjects) > 1 else next(iter(subjects), SubjectKind.ALERT).value


def _group_by_project(paged_subjects: Sequence[PagedSubject]) -> Iterator[PagedProject]:
    """Group alerts and incidents by project.

    Only the most severe alerts and incidents across all projects are listed. The others are only
    counted.
    """
    named = {each.about for each in paged_subjects[:_MAX_LISTED_SUBJECTS]}
    for project_id in dict.fromkeys(each.project_id for each in paged_subjects):
        here = [each for each in paged_subjects if each.project_id == project_id]
        shown = tuple(each for each in here if each.about in named)
        yield PagedProject(
            id=project_id, path=here[0].path, things=shown, others=len(here) - len(shown)
        )


@dataclass(frozen=True, kw_only=True)
class SelectedSubjects:
    """The selected alerts and incidents of a link that still need attention."""

    user: EventActor
    projects: Mapping[int, ProjectView]
    #: Alerts and incidents in the order in which they are locked.
    things: Sequence[PagedSubject]

    def get_ids_by_project(self, subject: SubjectKind) -> Mapping[int, Sequence[int]]:
        """Return the IDs of alerts or of incidents, by project ID."""
        found: dict[int, list[int]] = {}
        for each in self.things:
            if each.about.subject is subject:
                found.setdefault(each.project_id, []).append(each.about.id)
        return found


def find_selected_subjects(
    work: UnitOfWork, link: AcknowledgementLink, selection: LinkSelection
) -> SelectedSubjects:
    """Return the selected alerts and incidents of a link that still need attention.

    The link itself authorizes the user who received it. Raise InvalidError if alerts or incidents
    need attention but nothing was selected. The errors of `find_linked_subjects` are also raised.
    """
    user, projects, things = _load_linked_subjects(link, session=work.session, now=work.now)
    waiting = [each for each in things if each.needs_attention]
    # A single alert or incident has no checkbox.
    is_plain = len(waiting) == 1 and selection == LinkSelection()
    if waiting and not (is_plain or selection.things or selection.others_of):
        noun = _format_noun({each.about.subject for each in waiting})
        raise InvalidError(f"Select at least one {noun}.")
    wanted = waiting if is_plain else [each for each in waiting if selection.includes_subject(each)]
    ordered = sorted(wanted, key=lambda each: (each.project_id, each.about.id))
    return SelectedSubjects(user=user, projects=projects, things=ordered)


def acknowledge_alerts(work: UnitOfWork, selected_subjects: SelectedSubjects) -> int:
    """Acknowledge the selected alerts that still need attention.

    Return the number of alerts.
    """
    session, now = work.session, work.now
    change = StatusChange(status="acknowledged", by=selected_subjects.user, via=VIA_MESSAGE_LINK)
    own, done = work.with_actor(selected_subjects.user.id or 0, selected_subjects.user.name), 0
    for project_id, alert_ids in selected_subjects.get_ids_by_project(SubjectKind.ALERT).items():
        ids = select(Alert.id).where(Alert.id.in_(alert_ids))
        here = change_statuses_in_bulk(
            project_id, ids, change, among=(_TRIGGERED,), session=session, now=now
        )
        if here:
            path = selected_subjects.projects[project_id].path
            own.record_audit_event(
                EventKind.ALERTS_ACKNOWLEDGED_BY_LINK,
                user_id=selected_subjects.user.id,
                details={"project": path, "alerts": here},
                event_namespace=selected_subjects.projects[project_id].namespace,
            )
        done += here
    session.flush()  # Later queries read the changed alerts.
    return done


def _load_linked_subjects(
    link: AcknowledgementLink, *, session: Session, now: datetime
) -> tuple[EventActor, Mapping[int, ProjectView], Sequence[PagedSubject]]:
    """Return the user, the projects, and the alerts and incidents that the user may acknowledge.

    Raise ForbiddenError if the account is no longer active.
    """
    user = session.get(User, link.user_id)
    if user is None or user.state != ACTIVE or user.kind != HUMAN:
        raise ForbiddenError("The account that this message was sent to is no longer active.")
    rows: list[Alert | Incident] = []
    things: Sequence[tuple[SubjectKind, type[Any]]]
    things = (SubjectKind.ALERT, Alert), (SubjectKind.INCIDENT, Incident)
    for about, thing in things:
        paged = (
            select(about.column)
            .join(PageBatch, PageBatch.id == Page.batch_id)
            .join(PageRecipient, PageRecipient.id == PageBatch.recipient_id)
            .where(
                PageRecipient.user_id == user.id,
                PageBatch.id.between(link.first_batch_id, link.last_batch_id),
                Page.kind == PageKind.FIRING.value,
            )
        )
        rows += session.scalars(select(thing).where(thing.id.in_(paged)).order_by(thing.id))
    projects = _find_acknowledgeable_projects(user, rows, session=session, now=now)
    seen = [
        _build_paged_subject(each, projects[each.project_id])
        for each in rows
        if each.project_id in projects
    ]
    if rows and not seen:
        message = f"@{user.username} no longer has access to the alerts in this message."
        raise ForbiddenError(message)
    return EventActor(id=user.id, name=user.username), projects, seen


def _build_paged_subject(thing: Alert | Incident, project: ProjectView) -> PagedSubject:
    subject = SubjectKind.ALERT if isinstance(thing, Alert) else SubjectKind.INCIDENT
    return PagedSubject(
        about=PageSubject(subject, thing.id),
        title=format_title(thing),
        severity=SEVERITIES[get_severity_rank(thing)],
        status=thing.status,
        project_id=project.id,
        path=project.path,
        iid=thing.iid,
    )


def _find_acknowledgeable_projects(
    user: User, subjects: Sequence[Alert | Incident], *, session: Session, now: datetime
) -> Mapping[int, ProjectView]:
    rows = session.scalars(
        select(Project).where(
            Project.id.in_({each.project_id for each in subjects}),
            Project.deleted_at.is_(None),
            Project.archived_at.is_(None),
        )
    ).all()
    viewer = Viewer(user_id=user.id, is_admin=user.is_admin, today=now.date())
    permissions = read_permissions(viewer, map(build_namespace, rows), session=session)
    views = (permissions.build_project_view(each) for each in rows)
    return {each.id: each for each in views if each.can_see_alerts and each.can_handle_alerts}
