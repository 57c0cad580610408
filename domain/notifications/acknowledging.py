"""Acknowledges the alerts of a page for the person it was sent to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from itsdangerous import BadData, URLSafeSerializer
from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actor import Work
from domain.accounts.users import ACTIVE, HUMAN
from domain.alerts.handling.status import StatusChange, change_all
from domain.alerts.listing.filters import SEVERITIES
from domain.audit.events import Actor, EventKind
from domain.errors import ForbiddenError, GoneError, InvalidError, NotFoundError
from domain.notifications.paging import PageKind
from domain.projects.access import Permissions, namespace_of
from domain.projects.views import ProjectView, Viewer
from domain.types.base import columns_of
from models import Alert, Page, PageBatch, PageRecipient, Project, User

#: A page about an alert that nobody looked at for longer is no reason to acknowledge it unseen.
LINK_LIFETIME = timedelta(days=3)
_PURPOSE = "acknowledge from a message"
_WAITING = "triggered"
VIA = "from the link in a message"
#: So many alerts are named on the page; the others of a project are chosen together.
_MOST_NAMED = 50


@dataclass(frozen=True, kw_only=True)
class AcknowledgementLink:
    """What a link stands for: the pages of some batches, and the person they were sent to."""

    user_id: int
    #: The first and the last batch of the message; those between them went to the person as well.
    first_batch_id: int
    last_batch_id: int


def seal_link(link: AcknowledgementLink, keys: Sequence[str], *, now: datetime) -> str:
    """Return the signed text of a link; `keys` has the key that signs first."""
    expires = int((now + LINK_LIFETIME).timestamp())
    parts = [link.user_id, link.first_batch_id, link.last_batch_id, expires]
    return str(_serializer(keys).dumps(parts))


def open_link(text: str, keys: Sequence[str], *, now: datetime) -> AcknowledgementLink:
    """Return what a signed text stands for; raise NotFoundError, or GoneError if it has expired."""
    try:
        parts = _serializer(keys).loads(text)
    except BadData as error:
        message = "This link is not valid. Check that it was copied completely."
        raise NotFoundError(message) from error
    user_id, first, last, expires = map(int, parts)
    if datetime.fromtimestamp(expires, tz=UTC) <= now:
        raise GoneError("This link has expired. Sign in to acknowledge the alert.")
    return AcknowledgementLink(user_id=user_id, first_batch_id=first, last_batch_id=last)


def _serializer(keys: Sequence[str]) -> URLSafeSerializer:
    # The library signs with the last key.
    return URLSafeSerializer(list(reversed(keys)), salt=_PURPOSE)


@dataclass(frozen=True, kw_only=True)
class PagedAlert:
    """An alert of a page."""

    id: int
    title: str
    severity: str
    status: str
    path: str
    iid: int


@dataclass(frozen=True, kw_only=True)
class PagedProject:
    """The alerts of a project that wait for somebody."""

    id: int
    path: str
    #: Those that are named, the most severe first.
    alerts: tuple[PagedAlert, ...]
    #: How many are not named.
    others: int


@dataclass(frozen=True, kw_only=True)
class Acknowledgeable:
    """What a link leads to."""

    user: Actor
    #: How many alerts still wait for somebody.
    waiting: int
    #: Those with alerts that wait, the one with the most severe alert first.
    projects: tuple[PagedProject, ...]
    #: The most severe alerts that no longer wait.
    settled: tuple[PagedAlert, ...]
    #: How many alerts the page had that the person still sees.
    total: int


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which alerts of a page are to be acknowledged."""

    #: Ids of alerts.
    alerts: frozenset[int] = frozenset()
    #: Ids of projects whose alerts that were not named are chosen too.
    others_of: frozenset[int] = frozenset()
    #: Ids of the alerts that were named, chosen or not.
    named: frozenset[int] = frozenset()

    def has(self, alert: Alert) -> bool:
        """Return whether an alert is chosen."""
        is_other = alert.project_id in self.others_of and alert.id not in self.named
        return alert.id in self.alerts or is_other


def alerts_of_link(
    link: AcknowledgementLink, *, session: Session, now: datetime
) -> Acknowledgeable:
    """Return what a link leads to; raise ForbiddenError if the person may not acknowledge it."""
    user, projects, alerts = _found(link, session=session, now=now)
    ordered = sorted(alerts, key=lambda each: (each.severity, each.id))
    waiting = [each for each in ordered if each.status == _WAITING]
    return Acknowledgeable(
        user=user,
        waiting=len(waiting),
        projects=tuple(_by_project(waiting, projects)),
        settled=tuple(
            _view(each, projects[each.project_id]) for each in ordered if each.status != _WAITING
        )[:_MOST_NAMED],
        total=len(alerts),
    )


def _by_project(
    waiting: Sequence[Alert], projects: Mapping[int, ProjectView]
) -> Iterator[PagedProject]:
    """Yield the alerts that wait by project; of the most severe ones each is named."""
    named = {each.id for each in waiting[:_MOST_NAMED]}
    for project_id in dict.fromkeys(each.project_id for each in waiting):
        here = [each for each in waiting if each.project_id == project_id]
        project = projects[project_id]
        shown = tuple(_view(each, project) for each in here if each.id in named)
        yield PagedProject(
            id=project_id, path=project.path, alerts=shown, others=len(here) - len(shown)
        )


def _view(alert: Alert, project: ProjectView) -> PagedAlert:
    return PagedAlert(
        **columns_of(alert, PagedAlert) | {"severity": SEVERITIES[alert.severity].value},
        path=project.path,
    )


@dataclass(frozen=True, kw_only=True)
class ChosenAlerts:
    """What was chosen of the alerts of a link that still wait for somebody."""

    user: Actor
    projects: Mapping[int, ProjectView]
    #: The ids of the alerts by project, in the order in which they are locked.
    by_project: Mapping[int, Sequence[int]]


def chosen_alerts(work: Work, link: AcknowledgementLink, chosen: Chosen) -> ChosenAlerts:
    """Return the chosen alerts of a link that still wait for somebody.

    The link is the permission of the person that it was sent to. Raises ForbiddenError as
    `alerts_of_link`, and InvalidError if nothing was chosen though something waits.
    """
    user, projects, alerts = _found(link, session=work.session, now=work.now)
    waiting = [each for each in alerts if each.status == _WAITING]
    # One alert has no checkbox.
    is_plain = len(waiting) == 1 and chosen == Chosen()
    if waiting and not (is_plain or chosen.alerts or chosen.others_of):
        raise InvalidError("Select at least one alert.")
    wanted = waiting if is_plain else [each for each in waiting if chosen.has(each)]
    by_project: dict[int, list[int]] = {}
    for each in sorted(wanted, key=lambda each: each.project_id):
        by_project.setdefault(each.project_id, []).append(each.id)
    return ChosenAlerts(user=user, projects=projects, by_project=by_project)


def acknowledge(work: Work, link: AcknowledgementLink, chosen: Chosen) -> int:
    """Acknowledge chosen alerts of a link that still wait for somebody; return their number.

    Raises ForbiddenError or InvalidError as `chosen_alerts`.
    """
    session, now = work.session, work.now
    found = chosen_alerts(work, link, chosen)
    change = StatusChange(status="acknowledged", by=found.user, via=VIA)
    done = 0
    for project_id, alert_ids in found.by_project.items():
        ids = select(Alert.id).where(Alert.id.in_(alert_ids))
        done += change_all(project_id, ids, change, among=(_WAITING,), session=session, now=now)
    session.flush()  # before the alerts are read again
    if done:
        own, details = work.acting_as(found.user.id or 0, found.user.name), {"alerts": done}
        kind = EventKind.ALERTS_ACKNOWLEDGED_BY_LINK
        own.record(kind, user_id=found.user.id, details=details)
    return done


def _found(
    link: AcknowledgementLink, *, session: Session, now: datetime
) -> tuple[Actor, Mapping[int, ProjectView], Sequence[Alert]]:
    """Return the person, and the projects and alerts that the person may acknowledge."""
    user = session.get(User, link.user_id)
    if user is None or user.state != ACTIVE or user.kind != HUMAN:
        raise ForbiddenError("The account that this message was sent to is no longer active.")
    paged = (
        select(Page.alert_id)
        .join(PageBatch, PageBatch.id == Page.batch_id)
        .join(PageRecipient, PageRecipient.id == PageBatch.recipient_id)
        .where(
            PageRecipient.user_id == user.id,
            PageBatch.id.between(link.first_batch_id, link.last_batch_id),
            Page.kind == PageKind.FIRING.value,
        )
    )
    alerts = session.scalars(select(Alert).where(Alert.id.in_(paged)).order_by(Alert.id)).all()
    projects = _handled_projects(user, alerts, session=session, now=now)
    seen = [each for each in alerts if each.project_id in projects]
    if alerts and not seen:
        message = f"@{user.username} no longer has access to the alerts of this message."
        raise ForbiddenError(message)
    return Actor(id=user.id, name=user.username), projects, seen


def _handled_projects(
    user: User, alerts: Sequence[Alert], *, session: Session, now: datetime
) -> Mapping[int, ProjectView]:
    rows = session.scalars(
        select(Project).where(
            Project.id.in_({each.project_id for each in alerts}),
            Project.deleted_at.is_(None),
            Project.archived_at.is_(None),
        )
    ).all()
    viewer = Viewer(user_id=user.id, is_admin=user.is_admin, today=now.date())
    permissions = Permissions(viewer, map(namespace_of, rows), session=session)
    views = (permissions.project(each) for each in rows)
    return {each.id: each for each in views if each.shows_alerts and each.handles_alerts}
