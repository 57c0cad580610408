"""Digests of web pages with alerts: lists, the home page, projects, alerts and incidents.

Thousands of open pages request their digests, so computing a digest must require only a few queries
that use indexes. The statements are built only once, because building a statement takes longer than
running it. Counts, sums and maxima of columns show whether rows have changed.
"""

from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    Row,
    Select,
    Subquery,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.alerts.change_feed import Follower
from domain.alerts.handling.alert_detail import get_alert_id
from domain.alerts.listing.filters import OPEN_STATUSES, STATUSES
from domain.incidents.listing import get_incident_row
from domain.paging.page_digests.digests import PageDigest, compute_page_digest
from domain.paging.page_digests.projects import find_on_call_digest_inputs
from domain.projects.access import COUNT_LIMIT
from domain.projects.views import ProjectView
from models import (
    Alert,
    AlertChange,
    AlertNote,
    Assignment,
    Escalation,
    EscalationPage,
    Incident,
    IncidentAlert,
    IncidentAssignee,
    IncidentNote,
    MaintenanceWindow,
    OnCallOverride,
    OnCallRotation,
    OnCallSwap,
    OnCallSwapRequest,
    OnCallTurn,
    Page,
    PageMessage,
    PendingEscalation,
    Project,
    Silence,
)

#: Maximum number of alerts that an incident's digest includes. The newest alerts are used.
_MAX_INCIDENT_ALERTS = 500
#: Interval in minutes. Recurring maintenance windows usually start at a multiple of this interval.
_WINDOW_INTERVAL = 15
_ID = bindparam("id", type_=Alert.id.type)
_NOW = bindparam("now", type_=Silence.ends_at.type)
_PROJECT_IDS = bindparam("project_ids", type_=Alert.id.type, expanding=True)


def find_alerts_digest(
    project_ids: Collection[int], *shown: object, session: Session, now: datetime
) -> PageDigest:
    """Return the digest of a web page that shows the open alerts in projects.

    `shown` contains the other values that the web page depends on.
    """
    ids = sorted(project_ids)
    totals = _find_open_alert_totals(ids, session=session)
    mutes = _find_mute_digest_inputs(ids, session=session, now=now)
    return compute_page_digest(ids, totals, mutes, shown, open_alerts=totals.alerts)


def find_home_digest(
    user_id: int, project_ids: Collection[int], *, session: Session, now: datetime
) -> PageDigest:
    """Return the digest of a user's home page, which shows the alerts of these projects."""
    own = session.execute(_build_user_on_call_query(), {"id": user_id, "now": now}).all()
    return find_alerts_digest(project_ids, sorted(map(str, own)), session=session, now=now)


def find_alert_digest(work: UnitOfWork, project: ProjectView, iid: int) -> PageDigest:
    """Return the digest of an alert's page.

    Raise NotFoundError if the project has no such alert.
    """
    session = work.session
    this = {"id": get_alert_id(project.id, iid, session=session)}
    found = (
        session.execute(statement, this).all()
        for statement in (
            _build_alert_query(),
            _build_escalation_query(),
            _build_messages_query(Page.alert_id),
            _build_incidents_query(),
        )
    )
    return compute_page_digest(
        project,
        *found,
        *find_on_call_digest_inputs(work, project),
        _find_mute_digest_inputs([project.id], session=session, now=work.now),
        open_alerts=_find_open_alert_totals([project.id], session=session).alerts,
    )


def find_incident_digest(work: UnitOfWork, project: ProjectView, iid: int) -> PageDigest:
    """Return the digest of an incident's page.

    Raise NotFoundError if the project has no such incident.
    """
    row = get_incident_row(project.id, iid, session=work.session)
    found = (
        work.session.execute(statement, {"id": row.id}).all()
        for statement in (
            _build_incident_query(),
            _build_incident_alerts_query(),
            _build_messages_query(Page.incident_id),
        )
    )
    on_call = find_on_call_digest_inputs(work, project)
    return compute_page_digest(
        project, row.title, row.description, row.status, row.urgency, on_call, *found
    )


def _find_open_alert_totals(
    project_ids: Collection[int], *, session: Session
) -> Row[*tuple[Any, ...]]:
    is_postgres = session.get_bind().dialect.name == "postgresql"
    given = {"project_ids": project_ids}
    return session.execute(_build_open_alerts_query(is_postgres=is_postgres), given).one()


@cache
def _build_open_alerts_query(*, is_postgres: bool) -> Select[*tuple[Any, ...]]:
    """Return a query for the newest open alerts in projects, up to a maximum for each status.

    On Postgres, the maximum applies to each project, so that only one index is read.
    """
    listed, branches = select(Project.id).where(Project.id.in_(_PROJECT_IDS)).subquery(), []
    for status in OPEN_STATUSES:
        found = select(Alert.id).where(Alert.status == status).limit(COUNT_LIMIT + 1)
        if is_postgres:
            newest = found.order_by(Alert.started_at.desc(), Alert.id.desc())
            each = newest.where(Alert.project_id == listed.c.id).correlate(listed).lateral()
            branch = select(each.c.id).select_from(listed.join(each, true()))
        else:
            branch = found.where(Alert.project_id.in_(_PROJECT_IDS)).order_by(Alert.id.desc())
        branches.append(select(branch.subquery()))
    return _build_totals_query(union_all(*branches).subquery())


@cache
def _build_alert_query() -> Select[*tuple[Any, ...]]:
    return _build_totals_query(select(Alert.id).where(Alert.id == _ID).subquery())


@cache
def _build_incident_alerts_query() -> Select[*tuple[Any, ...]]:
    newest = select(IncidentAlert.alert_id.label("id")).where(IncidentAlert.incident_id == _ID)
    newest = newest.order_by(IncidentAlert.alert_id.desc()).limit(_MAX_INCIDENT_ALERTS)
    return _build_totals_query(newest.subquery())


def _build_totals_query(alert_ids: Subquery) -> Select[*tuple[Any, ...]]:
    """Return a query for the number of alerts, and for values that change when an alert changes.

    Each report increases the number of events. Every other change adds an activity entry.
    """
    notes, pages = (
        select(func.max(table.id)).where(table.alert_id == Alert.id).scalar_subquery()
        for table in (AlertNote, EscalationPage)
    )
    return (
        select(
            func.count().label("alerts"),
            func.sum(Alert.events),
            func.sum(Alert.severity),
            func.max(Alert.last_event_at),
            func.max(Alert.ended_at),
            func.sum(Assignment.user_id),
            func.sum(notes),
            func.sum(pages),
            *(func.sum(case((Alert.status == status, Alert.id), else_=0)) for status in STATUSES),
        )
        .select_from(alert_ids)
        .join(Alert, Alert.id == alert_ids.c.id)
        .outerjoin(Assignment, Assignment.alert_id == Alert.id)
    )


@cache
def _build_escalation_query() -> Select[*tuple[Any, ...]]:
    """Return a query for an alert's escalation and the number of unprocessed changes to the alert.

    A change is counted until incident rules have processed it.
    """
    waits = select(func.count()).where(
        AlertChange.follower == Follower.INCIDENTS.value, AlertChange.alert_id == _ID
    )
    return (
        select(*Escalation.__table__.c, PendingEscalation.due_at, waits.scalar_subquery())
        .select_from(Alert)
        .outerjoin(Escalation, Escalation.alert_id == Alert.id)
        .outerjoin(PendingEscalation, PendingEscalation.alert_id == Alert.id)
        .where(Alert.id == _ID)
    )


@cache
def _build_messages_query(about: Any) -> Select[*tuple[Any, ...]]:
    """Return a query for the numbers and times of pages and messages about an alert or incident."""
    return (
        select(
            func.count(Page.id.distinct()),
            func.count(Page.withdrawn_at),
            func.max(Page.outcome_at),
            func.count(PageMessage.id),
            func.count(PageMessage.ended_at),
            func.max(PageMessage.ended_at),
            func.sum(PageMessage.tries),
        )
        .select_from(Page)
        .outerjoin(PageMessage, PageMessage.batch_id == Page.batch_id)
        .where(about == _ID)
    )


@cache
def _build_incidents_query() -> Select[*tuple[Any, ...]]:
    """Return a query for the incidents that contain an alert."""
    found = select(Incident.id, Incident.status, Incident.updated_at).join(
        IncidentAlert, IncidentAlert.incident_id == Incident.id
    )
    return found.where(IncidentAlert.alert_id == _ID).order_by(Incident.id)


@cache
def _build_incident_query() -> Select[*tuple[Any, ...]]:
    """Return a query for the timeline entries and the assignees of an incident."""
    people = select(func.sum(IncidentAssignee.user_id)).where(IncidentAssignee.incident_id == _ID)
    return select(
        func.count(),
        func.max(IncidentNote.id),
        func.max(IncidentNote.updated_at),
        people.scalar_subquery(),
    ).where(IncidentNote.incident_id == _ID)


@cache
def _build_user_on_call_query() -> Any:
    """Return a query for a user's open incidents, rotations, overrides, swaps and swap requests.

    All overrides and swaps in the user's schedules are included, since they may change the user's
    shifts.
    """
    incidents = (
        select(func.count(), func.sum(Incident.id), func.max(Incident.updated_at))
        .join(IncidentAssignee, IncidentAssignee.incident_id == Incident.id)
        .where(IncidentAssignee.user_id == _ID, Incident.status != "resolved")
    )
    turns = (
        select(func.count(), func.sum(OnCallRotation.id), func.max(OnCallRotation.valid_from))
        .join(OnCallTurn, OnCallTurn.rotation_id == OnCallRotation.id)
        .where(OnCallTurn.user_id == _ID, OnCallRotation.valid_until.is_(None))
    )
    mine = turns.with_only_columns(OnCallRotation.schedule_id, maintain_column_froms=True)
    overrides = select(
        func.count(), func.sum(OnCallOverride.id), func.max(OnCallOverride.ends_at)
    ).where(
        or_(OnCallOverride.user_id == _ID, OnCallOverride.schedule_id.in_(mine)),
        OnCallOverride.ends_at > _NOW,
    )
    swaps = select(func.count(), func.sum(OnCallSwap.id), func.max(OnCallSwap.over_at)).where(
        or_(
            OnCallSwap.user_id == _ID,
            OnCallSwap.other_user_id == _ID,
            OnCallSwap.schedule_id.in_(mine),
        ),
        OnCallSwap.over_at > _NOW,
    )
    asked = select(
        func.count(), func.sum(OnCallSwapRequest.id), func.max(OnCallSwapRequest.created_at)
    ).where(
        OnCallSwapRequest.other_user_id == _ID,
        OnCallSwapRequest.state == "requested",
        OnCallSwapRequest.expires_at > _NOW,
    )
    return union_all(incidents, turns, overrides, swaps, asked)


def _find_mute_digest_inputs(
    project_ids: Collection[int], *, session: Session, now: datetime
) -> tuple[object, ...]:
    """Return values that change when a silence or maintenance window starts, changes or ends.

    The silences and windows of all groups are included. The times of a recurring window are not
    stored. If there is a recurring window, the values therefore also change every _WINDOW_INTERVAL
    minutes.
    """
    given = {"project_ids": project_ids, "now": now}
    found = session.execute(_build_mutes_query(), given).all()
    has_recurring = any(row.recurring for row in found)
    interval = (now.date(), now.hour, now.minute // _WINDOW_INTERVAL)
    return sorted(map(str, found)), interval if has_recurring else None


@cache
def _build_mutes_query() -> Any:
    silences, windows = (
        select(
            func.count(),
            func.sum(table.id),
            func.max(ends_at),
            recurring.label("recurring"),
        ).where(
            or_(table.project_id.in_(_PROJECT_IDS), table.group_id.is_not(None)),
            starts_at <= _NOW,
            or_(ends_at.is_(None), ends_at > _NOW),
        )
        for table, starts_at, ends_at, recurring in (
            (Silence, Silence.starts_at, Silence.ends_at, literal(0)),
            (
                MaintenanceWindow,
                MaintenanceWindow.first_starts_at,
                MaintenanceWindow.last_ends_at,
                func.count(MaintenanceWindow.rule),
            ),
        )
    )
    return union_all(silences, windows)
