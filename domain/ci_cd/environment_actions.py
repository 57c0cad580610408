"""Actions on environments, and alerts that started after their deployments."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import select, union_all
from sqlalchemy.orm import Session

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.alerts import environments
from domain.alerts.environments import EnvironmentFilter, EnvironmentView, get_environment_by_id
from domain.alerts.listing.filters import STATUSES
from domain.ci_cd.deployment_actions import find_latest_deployments
from domain.ci_cd.types import (
    Deployment,
    Environment,
    EnvironmentChange,
    EnvironmentQuery,
    NewEnvironment,
)
from domain.core.errors import ConflictError, InvalidError
from domain.core.types.pagination import ListPage
from domain.projects.views import ProjectView
from models import Alert
from models import Environment as EnvironmentRow

#: Maximum number of alerts counted for each status. Older alerts are not counted.
_MAX_ALERTS_PER_STATUS = 500


@read_action("environments.index")
def list_environments(
    work: UnitOfWork, project: ProjectView, query: EnvironmentQuery
) -> ListPage[Environment]:
    """List the environments of a project."""
    if query.name and query.search:
        raise InvalidError("`name` and `search` are mutually exclusive.")
    wanted = EnvironmentFilter(
        project_id=project.id, name=query.name, search=query.search, state=query.states
    )
    found, total = environments.list_environments_in_id_order(
        wanted, offset=query.offset, limit=query.page_size, session=work.session
    )
    return ListPage(items=[Environment.model_validate(each) for each in found], total=total)


@read_action("environments.show")
def show_environment(work: UnitOfWork, project: ProjectView, environment_id: int) -> Environment:
    """Show an environment.

    Raise NotFoundError if the project has no such environment.
    """
    found = get_environment_by_id(project.id, environment_id, session=work.session)
    return Environment.model_validate(found)


@action("environments.create")
def create_environment(work: UnitOfWork, project: ProjectView, new: NewEnvironment) -> Environment:
    """Create an environment.

    Raise InvalidError for an invalid value, and TakenError for a name in use.
    """
    made = environments.create_environment(project.id, new.name, session=work.session, now=work.now)
    return _store_external_url(work, project, made.id, new.external_url)


@action("environments.edit")
def change_environment(
    work: UnitOfWork, project: ProjectView, environment_id: int, change: EnvironmentChange
) -> Environment:
    """Change the external URL of an environment."""
    return _store_external_url(work, project, environment_id, change.external_url)


@action("environments.stop")
def stop_environment(work: UnitOfWork, project: ProjectView, environment_id: int) -> Environment:
    """Stop an environment until its next deployment.

    Alerts of the environment do not change.
    """
    found = get_environment_by_id(project.id, environment_id, session=work.session)
    if found.stopped_at is None:
        work.session.get_one(EnvironmentRow, found.id).stopped_at = work.now
        work.session.flush()
    return show_environment(work, project, environment_id)


@action("environments.delete")
def delete_environment(work: UnitOfWork, project: ProjectView, environment_id: int) -> Environment:
    """Delete an environment.

    The response contains the deleted environment. The alerts are kept, and still contain the
    environment's name.

    Raise NotFoundError if the environment does not exist. Raise ConflictError if it has open
    alerts, because users could no longer find these alerts on the environment's page.
    """
    found = get_environment_by_id(project.id, environment_id, session=work.session)
    if found.open_alerts:
        message = f"{found.name} has open alerts. Resolve or ignore them first."
        raise ConflictError(message, field="environment")
    work.session.delete(work.session.get_one(EnvironmentRow, environment_id))
    return Environment.model_validate(found)


def _store_external_url(
    work: UnitOfWork, project: ProjectView, environment_id: int, url: str
) -> Environment:
    found = get_environment_by_id(project.id, environment_id, session=work.session)
    work.session.get_one(EnvironmentRow, found.id).external_url = url or None
    work.session.flush()
    return show_environment(work, project, environment_id)


@dataclass(frozen=True, kw_only=True)
class AlertAfterDeployment:
    """An alert that started after a deployment."""

    iid: int
    title: str
    started_at: datetime


@dataclass(kw_only=True)
class DeploymentWithAlerts:
    """A deployment, and the alerts that started after it and before the next deployment."""

    deployment: Deployment
    alerts: int = 0
    #: True if older alerts were not counted.
    has_more: bool = False
    first_alert: AlertAfterDeployment | None = field(default=None)


def find_deployment_history(
    work: UnitOfWork, project: ProjectView, environment: EnvironmentView, *, maximum: int
) -> Sequence[DeploymentWithAlerts]:
    """Return at most `maximum` deployments with their alerts, newest first."""
    deployments = find_latest_deployments(work, project, environment, maximum=maximum)
    oldest_first = [DeploymentWithAlerts(deployment=each) for each in reversed(deployments)]
    if not oldest_first:
        return ()
    begins = [each.deployment.created_at for each in oldest_first]
    alerts, complete_from = _find_alerts_since(
        project.id, environment.name, begins[0], session=work.session
    )
    for alert in alerts:
        entry = oldest_first[bisect_right(begins, alert.started_at) - 1]
        entry.alerts += 1
        entry.first_alert = entry.first_alert or alert
    for entry, begin in zip(oldest_first, begins, strict=True):
        if complete_from is not None and begin < complete_from:
            # The first alert might not have been loaded.
            entry.has_more, entry.first_alert = True, None
    return oldest_first[::-1]


def _find_alerts_since(
    project_id: int, environment: str, begin: datetime, *, session: Session
) -> tuple[list[AlertAfterDeployment], datetime | None]:
    """Return alerts ordered by start time, and the time from which the list is complete.

    The time is None if the list contains all alerts. The queries for all statuses use the same
    index.
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
        .limit(_MAX_ALERTS_PER_STATUS)
        .subquery()
        for status in STATUSES
    ]
    rows = session.execute(union_all(*(select(part) for part in parts))).all()
    found = [AlertAfterDeployment(iid=row[0], title=row[1], started_at=row[2]) for row in rows]
    by_status = [[row[2] for row in rows if row[3] == status] for status in STATUSES]
    cut = [min(moments) for moments in by_status if len(moments) == _MAX_ALERTS_PER_STATUS]
    return sorted(found, key=lambda each: (each.started_at, each.iid)), max(cut, default=None)
