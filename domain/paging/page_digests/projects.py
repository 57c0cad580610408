"""Digests of web pages with on-call schedules, delivery logs and heartbeats."""

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.paging.on_call.shifts import find_users_on_call
from domain.paging.page_digests.digests import PageDigest, compute_page_digest
from domain.projects.row_ownership import build_used_by_condition, find_group_chain
from domain.projects.views import ProjectOrGroup, ProjectView
from models import (
    AuditEvent,
    Delivery,
    Heartbeat,
    HeartbeatPing,
    OnCallAbsence,
    OnCallRotation,
    OnCallSchedule,
    OnCallTurn,
)


def find_on_call_digest(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | None = None
) -> PageDigest:
    """Return the digest of a web page with one or all schedules of a project or group.

    The digest includes the latest audit events of the project or group and of its ancestor groups,
    because each change to a schedule records an audit event.
    """
    return compute_page_digest(
        holder, find_on_call_digest_inputs(work, holder, schedule_id), work.now.date()
    )


def find_on_call_digest_inputs(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | None = None
) -> tuple[object, ...]:
    """Return values that change when a schedule or a user on call changes."""
    session, chain = work.session, find_group_chain(holder, session=work.session)
    owners = [AuditEvent.group_id == group_id for group_id in chain.group_ids]
    if chain.project_id is not None:
        owners.append(AuditEvent.project_id == chain.project_id)
    newest = [select(func.max(AuditEvent.id)).where(each).scalar_subquery() for each in owners]
    used = select(OnCallSchedule.id).where(build_used_by_condition(OnCallSchedule, [chain]))
    ids = session.scalars(used).all() if schedule_id is None else [schedule_id]
    on_call = find_users_on_call(ids, moment=work.now, session=session) if ids else {}
    events = session.execute(select(*newest)).one()
    users = (
        select(OnCallTurn.user_id)
        .join(OnCallRotation, OnCallRotation.id == OnCallTurn.rotation_id)
        .where(OnCallRotation.schedule_id == schedule_id)
    )
    absences = session.execute(
        select(func.count(), func.max(OnCallAbsence.id)).where(OnCallAbsence.user_id.in_(users))
    ).one()
    return events, sorted(on_call.items()), absences


def find_deliveries_digest(integration_id: int, *, session: Session) -> PageDigest:
    """Return the digest of the page with an integration's delivery log.

    Similar rejections are not stored separately. They increase a counter in the newest rejected
    delivery.
    """
    here = Delivery.integration_id == integration_id
    newest = session.scalar(select(func.max(Delivery.id)).where(here))
    rejected = session.execute(
        select(Delivery.id, Delivery.skipped)
        .where(here, Delivery.status_code >= 300)  # noqa: PLR2004 - as in the index
        .order_by(Delivery.id.desc())
        .limit(1)
    ).first()
    return compute_page_digest(newest, rejected)


def find_heartbeats_digest(
    project: ProjectView, heartbeat_id: int | None = None, *, session: Session
) -> PageDigest:
    """Return the digest of a web page with one heartbeat or with all heartbeats in a project."""
    states = (
        func.sum(case((Heartbeat.state == state, Heartbeat.id), else_=0))
        for state in ("new", "up", "down")
    )
    found = select(
        func.count(),
        func.sum(Heartbeat.id),
        func.sum(Heartbeat.pings),
        func.sum(Heartbeat.due_ms),
        func.sum(Heartbeat.started_ms),
        func.max(Heartbeat.last_ping_at),
        func.count().filter(Heartbeat.has_alert),
        *states,
    ).where(Heartbeat.project_id == project.id)
    if heartbeat_id is None:
        return compute_page_digest(project, session.execute(found).one())
    logged = select(func.max(HeartbeatPing.id)).where(HeartbeatPing.heartbeat_id == heartbeat_id)
    one = session.execute(found.where(Heartbeat.id == heartbeat_id)).one()
    return compute_page_digest(project, one, session.scalar(logged))
