"""Actions on deployments, which record the commits that were deployed to environments."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.accounts.profiles import find_user_references
from domain.alerts.environments import (
    EnvironmentView,
    build_environment_view,
    create_environment,
    get_environment,
    get_environment_by_id,
)
from domain.ci_cd.types import (
    Deployment,
    DeploymentChange,
    DeploymentQuery,
    Environment,
    NewDeployment,
)
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.database.pagination import fetch_list_page
from domain.core.errors import InvalidError, NotFoundError, QueryError
from domain.core.types.base import get_column_values
from domain.core.types.pagination import ListPage
from domain.projects.views import ProjectView
from models import Deployment as DeploymentRow
from models import Environment as EnvironmentRow
from models import Project

#: Maximum number of deployments shown for the time around an alert.
MAX_NEARBY_DEPLOYMENTS = 100
_FINAL_STATES = frozenset({"success", "failed", "canceled"})
_SORT_COLUMNS = {
    "id": DeploymentRow.id,
    "iid": DeploymentRow.iid,
    "created_at": DeploymentRow.id,  # Ids increase with the creation time.
    "updated_at": DeploymentRow.updated_at,
    "finished_at": DeploymentRow.finished_at,
    "ref": DeploymentRow.ref,
}


@read_action("deployments.index")
def list_deployments(
    work: UnitOfWork, project: ProjectView, query: DeploymentQuery
) -> ListPage[Deployment]:
    """List the deployments of a project."""
    is_by_end = query.finished_after is not None or query.finished_before is not None
    if is_by_end and (query.order_by != "finished_at" or query.status != "success"):
        message = (
            "`finished_after` and `finished_before` require `order_by=finished_at` and "
            "`status=success`."
        )
        raise QueryError(message, field="order_by")
    statement = (
        select(DeploymentRow, EnvironmentRow)
        .join(EnvironmentRow, EnvironmentRow.id == DeploymentRow.environment_id)
        .where(DeploymentRow.project_id == project.id, *_build_conditions(project, query))
    )
    found = fetch_list_page(statement, _SORT_COLUMNS, query.requested_range, session=work.session)
    # Keyset pagination adds a column to each row.
    items = _build_deployments(
        work, [(row[0], build_environment_view(row[1])) for row in found.items]
    )
    return ListPage(items=items, total=found.total, next_cursor=found.next_cursor)


@read_action("deployments.show")
def show_deployment(work: UnitOfWork, project: ProjectView, deployment_id: int) -> Deployment:
    """Show a deployment.

    Raise NotFoundError if the project has no such deployment.
    """
    row = work.session.get(DeploymentRow, deployment_id)
    if row is None or row.project_id != project.id:
        raise NotFoundError("Deployment not found in this project.")
    environment = get_environment_by_id(project.id, row.environment_id, session=work.session)
    return _build_deployments(work, [(row, environment)])[0]


@action("deployments.create")
def create_deployment(work: UnitOfWork, project: ProjectView, new: NewDeployment) -> Deployment:
    """Report a deployment.

    The environment is created if it does not exist.
    """
    iid = _allocate_iid(project.id, session=work.session)
    environment = _get_or_create_environment(work, project, new.environment)
    row = DeploymentRow(
        project_id=project.id,
        iid=iid,
        environment_id=environment.id,
        sha=new.sha,
        ref=new.ref,
        is_tag=new.tag,
        status=new.status,
        user_id=work.actor.id,
        created_at=work.now,
        updated_at=work.now,
        finished_at=work.now if new.status in _FINAL_STATES else None,
    )
    work.session.add(row)
    work.session.flush()
    return _build_deployments(work, [(row, environment)])[0]


@action("deployments.edit")
def change_deployment(
    work: UnitOfWork, project: ProjectView, deployment_id: int, change: DeploymentChange
) -> Deployment:
    """Change the status of a deployment.

    Setting the current status again has no effect.

    Raise NotFoundError if the deployment does not exist. Raise InvalidError if it has already
    ended.
    """
    row, status = _lock_deployment(work, project, deployment_id), change.status
    if row.status != status:
        if row.status in _FINAL_STATES and status not in _FINAL_STATES:
            message = f"A finished deployment cannot become {status}. Its status is {row.status}."
            raise InvalidError(message, field="status")
        row.status, row.updated_at = status, work.now
        if status in _FINAL_STATES:
            row.finished_at = work.now
        work.session.flush()
    return show_deployment(work, project, deployment_id)


@action("deployments.delete")
def delete_deployment(work: UnitOfWork, project: ProjectView, deployment_id: int) -> None:
    """Delete a deployment that has ended.

    Raise NotFoundError if it does not exist. Raise InvalidError while the deployment is running.
    """
    row = _lock_deployment(work, project, deployment_id)
    if row.status == "running":
        message = "The deployment is running. Set its status to canceled first."
        raise InvalidError(message, field="status")
    work.session.delete(row)


def find_deployments_between(
    work: UnitOfWork,
    project: ProjectView,
    environments: Collection[str],
    *,
    start: datetime,
    end: datetime,
) -> Sequence[Deployment]:
    """Return the newest deployments to environments in a period, up to `MAX_NEARBY_DEPLOYMENTS`."""
    rows = work.session.execute(
        select(DeploymentRow, EnvironmentRow)
        .join(EnvironmentRow, EnvironmentRow.id == DeploymentRow.environment_id)
        .where(
            DeploymentRow.project_id == project.id,
            # This column has an index, and no deployment is updated before it is created.
            DeploymentRow.updated_at >= start,
            DeploymentRow.created_at.between(start, end),
            # Environments of other projects may have the same names.
            EnvironmentRow.project_id == project.id,
            EnvironmentRow.name.in_(environments),
        )
        .order_by(DeploymentRow.id.desc())
        .limit(MAX_NEARBY_DEPLOYMENTS)
    )
    return _build_deployments(
        work, [(row, build_environment_view(environment)) for row, environment in rows]
    )


def find_latest_deployments(
    work: UnitOfWork, project: ProjectView, environment: EnvironmentView, *, maximum: int
) -> Sequence[Deployment]:
    """Return at most `maximum` deployments of an environment, newest first."""
    rows = work.session.scalars(
        select(DeploymentRow)
        .where(
            DeploymentRow.project_id == project.id, DeploymentRow.environment_id == environment.id
        )
        .order_by(DeploymentRow.id.desc())
        .limit(maximum)
    )
    return _build_deployments(work, [(row, environment) for row in rows])


def find_deployed_versions_by_day(
    environment: EnvironmentView, *, maximum: int, session: Session
) -> Mapping[date, Sequence[str]]:
    """Return the names of deployed versions by day (UTC), for the last `maximum` deployments."""
    rows = session.execute(
        select(DeploymentRow.created_at, DeploymentRow.ref)
        .where(DeploymentRow.environment_id == environment.id)
        .order_by(DeploymentRow.id.desc())
        .limit(maximum)
    )
    found: dict[date, list[str]] = defaultdict(list)
    for at, ref in rows:
        found[at.date()].append(ref)
    return found


def find_newest_deployment_by_environment(
    work: UnitOfWork, environments: Sequence[EnvironmentView]
) -> Mapping[int, Deployment]:
    """Return the newest deployment of each environment, if any, by the environment's ID."""
    by_id = {each.id: each for each in environments}
    newest = (
        select(func.max(DeploymentRow.id))
        .where(DeploymentRow.environment_id == EnvironmentRow.id)
        .correlate(EnvironmentRow)
        .scalar_subquery()
    )
    ids = work.session.scalars(select(newest).where(EnvironmentRow.id.in_(by_id))).all()
    rows = work.session.scalars(select(DeploymentRow).where(DeploymentRow.id.in_(ids)))
    shown = _build_deployments(work, [(row, by_id[row.environment_id]) for row in rows])
    return {each.environment.id: each for each in shown}


def _build_conditions(
    project: ProjectView, query: DeploymentQuery
) -> Sequence[ColumnElement[bool]]:
    bounds = (
        (DeploymentRow.updated_at, query.updated_after, query.updated_before),
        (DeploymentRow.finished_at, query.finished_after, query.finished_before),
    )
    found: list[ColumnElement[bool]] = []
    if query.environment:
        named = select(EnvironmentRow.id).where(
            EnvironmentRow.project_id == project.id, EnvironmentRow.name == query.environment
        )
        # A scalar subquery makes the database use the index on deployments instead of a join.
        found.append(DeploymentRow.environment_id == named.scalar_subquery())
    if query.status:
        found.append(DeploymentRow.status == query.status)
    for column, after, before in bounds:
        found += [column >= after] if after else []
        found += [column <= before] if before else []
    return found


def _lock_deployment(work: UnitOfWork, project: ProjectView, deployment_id: int) -> DeploymentRow:
    """Lock and return a deployment, so that its status does not change until the commit."""
    show_deployment(work, project, deployment_id)
    row = work.session.get_one(DeploymentRow, deployment_id)
    work.session.refresh(row, with_for_update={"key_share": True})
    return row


def _allocate_iid(project_id: int, *, session: Session) -> int:
    """Return a number that no deployment of the project has ever had.

    Updating the project takes a lock that does not block inserts of alerts, which reference the
    project.
    """
    # The previous release does not update the counter, so the table is checked for higher numbers.
    of_project = select(func.max(DeploymentRow.iid)).where(DeploymentRow.project_id == project_id)
    stored = func.coalesce(of_project.scalar_subquery(), 0)
    last = case((stored > Project.last_deployment_iid, stored), else_=Project.last_deployment_iid)
    return session.scalars(
        build_bulk_update(Project)
        .where(Project.id == project_id)
        .values(last_deployment_iid=last + 1)
        .returning(Project.last_deployment_iid)
    ).one()


def _get_or_create_environment(
    work: UnitOfWork, project: ProjectView, name: str
) -> EnvironmentView:
    """Return the environment for a deployment, and create or restart it if needed."""
    try:
        found = get_environment(project.id, name, session=work.session)
    except NotFoundError:
        return create_environment(project.id, name, session=work.session, now=work.now)
    if found.stopped_at is None:
        return found
    work.session.get_one(EnvironmentRow, found.id).stopped_at = None
    return replace(found, stopped_at=None)


def _build_deployments(
    work: UnitOfWork, found: Iterable[tuple[DeploymentRow, EnvironmentView]]
) -> Sequence[Deployment]:
    pairs = tuple(found)
    ids = (row.user_id for row, _ in pairs if row.user_id)
    named = find_user_references(ids, base_url=work.settings.base_url, session=work.session)
    return [
        Deployment(
            **get_column_values(row, Deployment)
            | {"environment": Environment.model_validate(view)},
            tag=row.is_tag,
            user=named.get(row.user_id or 0),
        )
        for row, view in pairs
    ]
