"""Deployments of an environment beside the alerts that began after each of them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import select, union_all
from sqlalchemy.orm import Session

from domain.access.actor import Work
from domain.alerts.environments import EnvironmentView
from domain.alerts.listing.filters import STATUSES
from domain.ci_cd.deployment_actions import latest_deployments
from domain.ci_cd.types import Deployment
from domain.projects.views import ProjectView
from models import Alert

#: Of each status, counted from the newest.
_MOST_ALERTS = 500


@dataclass(frozen=True, kw_only=True)
class StartedAlert:
    """An alert as the deployment before it names it."""

    iid: int
    title: str
    started_at: datetime


@dataclass(kw_only=True)
class DeploymentInTime:
    """A deployment, and what began between it and the next one."""

    deployment: Deployment
    alerts: int = 0
    #: Whether older alerts were left out of the count.
    has_more: bool = False
    first_alert: StartedAlert | None = field(default=None)


def environment_history(
    work: Work, project: ProjectView, environment: EnvironmentView, *, most: int
) -> Sequence[DeploymentInTime]:
    """Return the latest deployments, newest first, at most `most`, each with its alerts."""
    deployments = latest_deployments(work, project, environment, most=most)
    oldest_first = [DeploymentInTime(deployment=each) for each in reversed(deployments)]
    if not oldest_first:
        return ()
    begins = [each.deployment.created_at for each in oldest_first]
    alerts, complete_from = _alerts_since(
        project.id, environment.name, begins[0], session=work.session
    )
    for alert in alerts:
        entry = oldest_first[bisect_right(begins, alert.started_at) - 1]
        entry.alerts += 1
        entry.first_alert = entry.first_alert or alert
    for entry, begin in zip(oldest_first, begins, strict=True):
        if complete_from is not None and begin < complete_from:
            # The first one may be among those that were left out.
            entry.has_more, entry.first_alert = True, None
    return oldest_first[::-1]


def _alerts_since(
    project_id: int, environment: str, begin: datetime, *, session: Session
) -> tuple[list[StartedAlert], datetime | None]:
    """Return the alerts in the order of their starts, and since when they are all there.

    The time is None if none was left out. One index serves each status.
    """
    parts = [
        select(Alert.iid, Alert.title, Alert.started_at, Alert.status)
        .where(
            Alert.project_id == project_id,
            Alert.environment == environment,
            Alert.status == status,
            Alert.started_at >= begin,
        )
        .order_by(Alert.started_at.desc(), Alert.id.desc())
        .limit(_MOST_ALERTS)
        .subquery()
        for status in STATUSES
    ]
    rows = session.execute(union_all(*(select(part) for part in parts))).all()
    found = [StartedAlert(iid=row[0], title=row[1], started_at=row[2]) for row in rows]
    by_status = [[row[2] for row in rows if row[3] == status] for status in STATUSES]
    cut = [min(moments) for moments in by_status if len(moments) == _MOST_ALERTS]
    return sorted(found, key=lambda each: (each.started_at, each.iid)), max(cut, default=None)
