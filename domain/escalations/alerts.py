"""Alerts as escalations see them, and what these need to know of the service."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.formats.base import Reading
from domain.notifications.policy import PagingPolicy
from models import Alert, Project

_TRIGGERED = "triggered"


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What escalations need to know of the service."""

    reading: Reading
    paging: PagingPolicy


@dataclass(frozen=True, kw_only=True)
class AlertInBrief:
    """An alert that somebody may be paged for."""

    id: int
    iid: int
    title: str
    project_id: int
    project_path: str
    is_critical: bool
    #: Whether somebody is to be paged for it, unless something holds that back.
    is_triggered: bool
    #: Whether its project is archived, which holds pages back.
    is_archived: bool


def alerts_in_brief(alert_ids: Collection[int], *, session: Session) -> Mapping[int, AlertInBrief]:
    """Return alerts by id; ids without an alert are left out."""
    if not alert_ids:
        return {}
    rows = session.execute(
        select(
            Alert.id,
            Alert.iid,
            Alert.title,
            Alert.project_id,
            Alert.status,
            Alert.severity,
            Project.path,
            Project.deleted_at,
            Project.archived_at,
        )
        .join(Project, Project.id == Alert.project_id)
        .where(Alert.id.in_(alert_ids))
    )
    return {
        row.id: AlertInBrief(
            id=row.id,
            iid=row.iid,
            title=row.title,
            project_id=row.project_id,
            project_path=row.path,
            is_critical=row.severity == 0,
            is_triggered=(row.status, row.deleted_at) == (_TRIGGERED, None),
            is_archived=row.archived_at is not None,
        )
        for row in rows
    }
