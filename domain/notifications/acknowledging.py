"""Acknowledges the alerts of a page for the person it was sent to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.accounts.users import ACTIVE, HUMAN
from domain.alerts.handling.status import StatusChange, change_all
from domain.alerts.listing.filters import SEVERITIES
from domain.audit.events import Actor
from domain.errors import ForbiddenError
from domain.notifications.links import AcknowledgementLink
from domain.notifications.paging import PageKind
from domain.projects.access import Permissions, namespace_of
from domain.projects.views import ProjectView, Viewer
from models import Alert, Page, PageBatch, PageRecipient, Project, User

VIA = "from the link in a message"
#: So many alerts are named on the page.
_MOST_NAMED = 20


@dataclass(frozen=True, kw_only=True)
class PagedAlert:
    """An alert of a page."""

    title: str
    severity: str
    status: str
    path: str
    iid: int


@dataclass(frozen=True, kw_only=True)
class Acknowledgeable:
    """What a link leads to."""

    user: Actor
    #: How many alerts still wait for somebody.
    waiting: int
    #: The most severe ones, first those that wait.
    alerts: tuple[PagedAlert, ...]
    #: How many alerts the page had that the person still sees.
    total: int


def alerts_of_link(
    link: AcknowledgementLink, *, session: Session, now: datetime
) -> Acknowledgeable:
    """Return what a link leads to; raise ForbiddenError if the person may not acknowledge it."""
    user, projects, alerts = _found(link, session=session, now=now)
    ordered = sorted(alerts, key=lambda each: (each.status != "triggered", each.severity, each.id))
    shown = tuple(
        PagedAlert(
            title=each.title,
            severity=SEVERITIES[each.severity].value,
            status=each.status,
            path=projects[each.project_id].path,
            iid=each.iid,
        )
        for each in ordered[:_MOST_NAMED]
    )
    waiting = sum(each.status == "triggered" for each in alerts)
    return Acknowledgeable(user=user, waiting=waiting, alerts=shown, total=len(alerts))


def acknowledge(link: AcknowledgementLink, *, session: Session, now: datetime) -> int:
    """Acknowledge the alerts of a link that still wait for somebody, and return their number.

    Raises ForbiddenError as `alerts_of_link`.
    """
    user, _, alerts = _found(link, session=session, now=now)
    change = StatusChange(status="acknowledged", by=user, via=VIA)
    by_project: dict[int, list[int]] = {}
    for each in alerts:
        by_project.setdefault(each.project_id, []).append(each.id)
    done = 0
    for project_id in sorted(by_project):  # in one order, as each is locked
        ids = select(Alert.id).where(Alert.id.in_(by_project[project_id]))
        done += change_all(project_id, ids, change, among=("triggered",), session=session, now=now)
    return done


def _found(
    link: AcknowledgementLink, *, session: Session, now: datetime
) -> tuple[Actor, Mapping[int, ProjectView], Sequence[Alert]]:
    """Return the person, and the projects and alerts that the person may acknowledge."""
    user = session.get(User, link.user_id)
    if user is None or user.state != ACTIVE or user.kind != HUMAN:
        message = "The account that this message was sent to is no longer active."
        raise ForbiddenError(message)
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
