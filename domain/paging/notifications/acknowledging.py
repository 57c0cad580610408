"""Acknowledges alerts and incidents by the link in a page, for the user who received the page."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from itsdangerous import BadData, URLSafeSerializer
from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actor import Work
from domain.accounts.users import ACTIVE, HUMAN
from domain.alerts.handling.status import StatusChange, change_all
from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.reading.incoming import Severity
from domain.audit.events import Actor, EventKind
from domain.core.errors import ForbiddenError, GoneError, InvalidError, NotFoundError
from domain.paging.notifications.page_targets import About, Subject, rank_of, shown_title
from domain.paging.notifications.paging import PageKind
from domain.projects.access import namespace_of, permissions_of
from domain.projects.views import ProjectView, Viewer
from models import Alert, Incident, Page, PageBatch, PageRecipient, Project, User

#: Lifetime of a link. Users should not acknowledge older pages without looking at the alerts.
LINK_LIFETIME = timedelta(days=3)
_PURPOSE = "acknowledge from a message"
_WAITING = "triggered"
VIA = "from the link in a message"
#: Maximum number of alerts and incidents that the page lists; others are selected by project.
_MOST_NAMED = 50


@dataclass(frozen=True, kw_only=True)
class AcknowledgementLink:
    """The content of a link: the user who received the pages, and a range of batches."""

    user_id: int
    #: First and last batch of the message. All batches between them went to the same user.
    first_batch_id: int
    last_batch_id: int


def seal_link(link: AcknowledgementLink, keys: Sequence[str], *, now: datetime) -> str:
    """Return the signed text of a link; the first of `keys` signs."""
    expires = int((now + LINK_LIFETIME).timestamp())
    parts = [link.user_id, link.first_batch_id, link.last_batch_id, expires]
    return str(_serializer(keys).dumps(parts))


def open_link(text: str, keys: Sequence[str], *, now: datetime) -> AcknowledgementLink:
    """Return the link of a signed text.

    Raise NotFoundError if the signature is wrong, or GoneError if the link has expired.
    """
    try:
        parts = _serializer(keys).loads(text)
    except BadData as error:
        message = "This link is invalid. Check that you copied the entire link."
        raise NotFoundError(message) from error
    user_id, first, last, expires = map(int, parts)
    if datetime.fromtimestamp(expires, tz=UTC) <= now:
        raise GoneError("This link has expired. Sign in to acknowledge the alert.")
    return AcknowledgementLink(user_id=user_id, first_batch_id=first, last_batch_id=last)


def _serializer(keys: Sequence[str]) -> URLSafeSerializer:
    # The library signs with the last key.
    return URLSafeSerializer(list(reversed(keys)), salt=_PURPOSE)


@dataclass(frozen=True, kw_only=True)
class PagedThing:
    """An alert or incident of a page."""

    about: About
    title: str
    severity: Severity
    status: str
    project_id: int
    path: str
    iid: int

    @property
    def is_incident(self) -> bool:
        """Return whether this is an incident."""
        return self.about.subject is Subject.INCIDENT

    @property
    def is_waiting(self) -> bool:
        """Return whether the alert or incident needs attention."""
        return self.status == _WAITING


@dataclass(frozen=True, kw_only=True)
class PagedProject:
    """The alerts and incidents of a project that need attention."""

    id: int
    path: str
    #: Listed alerts and incidents, the most severe first.
    things: tuple[PagedThing, ...]
    #: Number of alerts and incidents that are not listed.
    others: int


@dataclass(frozen=True, kw_only=True)
class Acknowledgeable:
    """The alerts and incidents of a link."""

    user: Actor
    #: Number of alerts and incidents that still need attention.
    waiting: int
    #: True if alerts are among them. Only alerts can be snoozed.
    has_alerts: bool
    #: Projects with alerts or incidents that need attention, the most severe first.
    projects: tuple[PagedProject, ...]
    #: Most severe alerts and incidents that no longer need attention.
    settled: tuple[PagedThing, ...]
    #: Number of alerts and incidents of the link that the user can still see.
    total: int
    #: Noun for their subjects: `alert`, `incident`, or `problem` for both.
    noun: str


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The alerts and incidents that a user selected on the page."""

    things: frozenset[About] = frozenset()
    #: Ids of projects whose unlisted alerts and incidents are selected too.
    others_of: frozenset[int] = frozenset()
    #: Alerts and incidents that were listed, selected or not.
    named: frozenset[About] = frozenset()

    def has(self, thing: PagedThing) -> bool:
        """Return whether an alert or incident is selected."""
        is_other = thing.project_id in self.others_of and thing.about not in self.named
        return thing.about in self.things or is_other


def things_of_link(
    link: AcknowledgementLink, *, session: Session, now: datetime
) -> Acknowledgeable:
    """Return the alerts and incidents of a link.

    Raise ForbiddenError if the user may not acknowledge them.
    """
    user, _, things = _found(link, session=session, now=now)
    ordered = sorted(things, key=lambda each: (each.severity.rank, each.about.id))
    waiting = [each for each in ordered if each.is_waiting]
    return Acknowledgeable(
        user=user,
        waiting=len(waiting),
        has_alerts=any(not each.is_incident for each in waiting),
        projects=tuple(_by_project(waiting)),
        settled=tuple(each for each in ordered if not each.is_waiting)[:_MOST_NAMED],
        total=len(things),
        noun=_noun({each.about.subject for each in things}),
    )


def _noun(subjects: Collection[Subject]) -> str:
    return "problem" if len(subjects) > 1 else next(iter(subjects), Subject.ALERT).value


def _by_project(waiting: Sequence[PagedThing]) -> Iterator[PagedProject]:
    """Yield the alerts and incidents that need attention by project; list the most severe."""
    named = {each.about for each in waiting[:_MOST_NAMED]}
    for project_id in dict.fromkeys(each.project_id for each in waiting):
        here = [each for each in waiting if each.project_id == project_id]
        shown = tuple(each for each in here if each.about in named)
        yield PagedProject(
            id=project_id, path=here[0].path, things=shown, others=len(here) - len(shown)
        )


@dataclass(frozen=True, kw_only=True)
class ChosenThings:
    """The selected alerts and incidents of a link that still need attention."""

    user: Actor
    projects: Mapping[int, ProjectView]
    #: Alerts and incidents in the order in which they are locked.
    things: Sequence[PagedThing]

    def ids_of(self, subject: Subject) -> Mapping[int, Sequence[int]]:
        """Return the ids of alerts or of incidents, by project."""
        found: dict[int, list[int]] = {}
        for each in self.things:
            if each.about.subject is subject:
                found.setdefault(each.project_id, []).append(each.about.id)
        return found


def chosen_things(work: Work, link: AcknowledgementLink, chosen: Chosen) -> ChosenThings:
    """Return the selected alerts and incidents of a link that still need attention.

    The link itself authorizes the user who received it. Raise ForbiddenError as `things_of_link`
    does, or InvalidError if nothing was selected although something needs attention.
    """
    user, projects, things = _found(link, session=work.session, now=work.now)
    waiting = [each for each in things if each.is_waiting]
    # A single alert or incident has no checkbox.
    is_plain = len(waiting) == 1 and chosen == Chosen()
    if waiting and not (is_plain or chosen.things or chosen.others_of):
        noun = _noun({each.about.subject for each in waiting})
        raise InvalidError(f"Select at least one {noun}.")
    wanted = waiting if is_plain else [each for each in waiting if chosen.has(each)]
    ordered = sorted(wanted, key=lambda each: (each.project_id, each.about.id))
    return ChosenThings(user=user, projects=projects, things=ordered)


def acknowledge_alerts(work: Work, found: ChosenThings) -> int:
    """Acknowledge the selected alerts of a link that still need attention; return their number."""
    session, now = work.session, work.now
    change = StatusChange(status="acknowledged", by=found.user, via=VIA)
    own, done = work.acting_as(found.user.id or 0, found.user.name), 0
    for project_id, alert_ids in found.ids_of(Subject.ALERT).items():
        ids = select(Alert.id).where(Alert.id.in_(alert_ids))
        here = change_all(project_id, ids, change, among=(_WAITING,), session=session, now=now)
        if here:
            path = found.projects[project_id].path
            own.record(
                EventKind.ALERTS_ACKNOWLEDGED_BY_LINK,
                user_id=found.user.id,
                details={"project": path, "alerts": here},
                place=found.projects[project_id].namespace,
            )
        done += here
    session.flush()  # The alerts are read again later.
    return done


def _found(
    link: AcknowledgementLink, *, session: Session, now: datetime
) -> tuple[Actor, Mapping[int, ProjectView], Sequence[PagedThing]]:
    """Return the user, the projects, and the alerts and incidents the user may acknowledge."""
    user = session.get(User, link.user_id)
    if user is None or user.state != ACTIVE or user.kind != HUMAN:
        raise ForbiddenError("The account that this message was sent to is no longer active.")
    rows: list[Alert | Incident] = []
    things: Mapping[Subject, type[Any]] = {Subject.ALERT: Alert, Subject.INCIDENT: Incident}
    for about, thing in things.items():
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
    projects = _handled_projects(user, rows, session=session, now=now)
    seen = [_view(each, projects[each.project_id]) for each in rows if each.project_id in projects]
    if rows and not seen:
        message = f"@{user.username} no longer has access to the alerts in this message."
        raise ForbiddenError(message)
    return Actor(id=user.id, name=user.username), projects, seen


def _view(thing: Alert | Incident, project: ProjectView) -> PagedThing:
    subject = Subject.ALERT if isinstance(thing, Alert) else Subject.INCIDENT
    return PagedThing(
        about=About(subject, thing.id),
        title=shown_title(thing),
        severity=SEVERITIES[rank_of(thing)],
        status=thing.status,
        project_id=project.id,
        path=project.path,
        iid=thing.iid,
    )


def _handled_projects(
    user: User, things: Sequence[Alert | Incident], *, session: Session, now: datetime
) -> Mapping[int, ProjectView]:
    rows = session.scalars(
        select(Project).where(
            Project.id.in_({each.project_id for each in things}),
            Project.deleted_at.is_(None),
            Project.archived_at.is_(None),
        )
    ).all()
    viewer = Viewer(user_id=user.id, is_admin=user.is_admin, today=now.date())
    permissions = permissions_of(viewer, map(namespace_of, rows), session=session)
    views = (permissions.project(each) for each in rows)
    return {each.id: each for each in views if each.shows_alerts and each.handles_alerts}
