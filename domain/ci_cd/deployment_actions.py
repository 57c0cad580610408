"""Actions on deployments: commits that were deployed to environments, with the results."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.accounts.profiles import user_references
from domain.alerts.environments import (
    EnvironmentView,
    create_environment,
    get_environment,
    get_numbered_environment,
    view_of,
)
from domain.ci_cd.types import (
    Deployment,
    DeploymentChange,
    DeploymentQuery,
    Environment,
    NewDeployment,
)
from domain.core.database.paging import fetch_part
from domain.core.database.rows import update_rows
from domain.core.errors import InvalidError, NotFoundError, QueryError
from domain.core.types.base import Found, columns_of
from domain.projects.views import ProjectView
from models import Deployment as DeploymentRow
from models import Environment as EnvironmentRow
from models import Project

#: Maximum number of deployments that are shown near an alert.
MOST_BETWEEN = 100
_FINISHED = frozenset({"success", "failed", "canceled"})
_ORDERS = {
    "id": DeploymentRow.id,
    "iid": DeploymentRow.iid,
    "created_at": DeploymentRow.id,  # The same order as by id.
    "updated_at": DeploymentRow.updated_at,
    "finished_at": DeploymentRow.finished_at,
    "ref": DeploymentRow.ref,
}


@question("deployments.index")
def list_deployments(work: Work, project: ProjectView, query: DeploymentQuery) -> Found[Deployment]:
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
        .where(DeploymentRow.project_id == project.id, *_conditions(project, query))
    )
    found = fetch_part(statement, _ORDERS, query.part, session=work.session)
    # A row of keyset pagination has an additional column.
    items = _shown(work, [(row[0], view_of(row[1])) for row in found.items])
    return Found(items=items, total=found.total, next_cursor=found.next_cursor)


@question("deployments.show")
def show_deployment(work: Work, project: ProjectView, deployment_id: int) -> Deployment:
    """Show a deployment."""
    row = work.session.get(DeploymentRow, deployment_id)
    if row is None or row.project_id != project.id:
        raise NotFoundError("Deployment not found in this project.")
    environment = get_numbered_environment(project.id, row.environment_id, session=work.session)
    return _shown(work, [(row, environment)])[0]


@action("deployments.create")
def create_deployment(work: Work, project: ProjectView, new: NewDeployment) -> Deployment:
    """Report a deployment.

    Its environment is created if it is new.
    """
    iid = _next_iid(project.id, session=work.session)
    environment = _environment(work, project, new.environment)
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
        finished_at=work.now if new.status in _FINISHED else None,
    )
    work.session.add(row)
    work.session.flush()
    return _shown(work, [(row, environment)])[0]


@action("deployments.edit")
def change_deployment(
    work: Work, project: ProjectView, deployment_id: int, change: DeploymentChange
) -> Deployment:
    """Change the status of a deployment.

    The current status is accepted without a change.

    Raise NotFoundError if it does not exist. Raise InvalidError for a deployment that has ended.
    """
    row, status = _locked(work, project, deployment_id), change.status
    if row.status != status:
        if row.status in _FINISHED and status not in _FINISHED:
            message = f"A finished deployment cannot become {status}. Its status is {row.status}."
            raise InvalidError(message, field="status")
        row.status, row.updated_at = status, work.now
        if status in _FINISHED:
            row.finished_at = work.now
        work.session.flush()
    return show_deployment(work, project, deployment_id)


@action("deployments.delete")
def delete_deployment(work: Work, project: ProjectView, deployment_id: int) -> None:
    """Delete a deployment that has ended.

    Raise NotFoundError if it does not exist. Raise InvalidError while the deployment is running.
    """
    row = _locked(work, project, deployment_id)
    if row.status == "running":
        message = "The deployment is running. Set its status to canceled first."
        raise InvalidError(message, field="status")
    work.session.delete(row)


def deployments_between(
    work: Work,
    project: ProjectView,
    environments: Collection[str],
    *,
    start: datetime,
    end: datetime,
) -> Sequence[Deployment]:
    """Return the newest deployments to environments in a period, at most `MOST_BETWEEN`."""
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
        .limit(MOST_BETWEEN)
    )
    return _shown(work, [(row, view_of(environment)) for row, environment in rows])


def latest_deployments(
    work: Work, project: ProjectView, environment: EnvironmentView, *, most: int
) -> Sequence[Deployment]:
    """Return the latest deployments of an environment, newest first, at most `most`."""
    rows = work.session.scalars(
        select(DeploymentRow)
        .where(
            DeploymentRow.project_id == project.id, DeploymentRow.environment_id == environment.id
        )
        .order_by(DeploymentRow.id.desc())
        .limit(most)
    )
    return _shown(work, [(row, environment) for row in rows])


def newest_deployments(
    work: Work, environments: Sequence[EnvironmentView]
) -> Mapping[int, Deployment]:
    """Return the newest deployment of each environment, if any, by the environment's id."""
    by_id = {each.id: each for each in environments}
    newest = (
        select(func.max(DeploymentRow.id))
        .where(DeploymentRow.environment_id == EnvironmentRow.id)
        .correlate(EnvironmentRow)
        .scalar_subquery()
    )
    ids = work.session.scalars(select(newest).where(EnvironmentRow.id.in_(by_id))).all()
    rows = work.session.scalars(select(DeploymentRow).where(DeploymentRow.id.in_(ids)))
    shown = _shown(work, [(row, by_id[row.environment_id]) for row in rows])
    return {each.environment.id: each for each in shown}


def _conditions(project: ProjectView, query: DeploymentQuery) -> Sequence[ColumnElement[bool]]:
    bounds = (
        (DeploymentRow.updated_at, query.updated_after, query.updated_before),
        (DeploymentRow.finished_at, query.finished_after, query.finished_before),
    )
    found: list[ColumnElement[bool]] = []
    if query.environment:
        named = select(EnvironmentRow.id).where(
            EnvironmentRow.project_id == project.id, EnvironmentRow.name == query.environment
        )
        # A single value, so that the index on deployments is used instead of a join.
        found.append(DeploymentRow.environment_id == named.scalar_subquery())
    if query.status:
        found.append(DeploymentRow.status == query.status)
    for column, after, before in bounds:
        found += [column >= after] if after else []
        found += [column <= before] if before else []
    return found


def _locked(work: Work, project: ProjectView, deployment_id: int) -> DeploymentRow:
    """Lock and return a deployment, so that its status does not change until the commit."""
    show_deployment(work, project, deployment_id)
    row = work.session.get_one(DeploymentRow, deployment_id)
    work.session.refresh(row, with_for_update={"key_share": True})
    return row


def _next_iid(project_id: int, *, session: Session) -> int:
    """Return a number that no deployment of the project ever had.

    The update of the project takes a lock that does not block inserts of alerts, which refer to the
    project.
    """
    # The previous release does not update the counter, so its deployments are found in the table.
    of_project = select(func.max(DeploymentRow.iid)).where(DeploymentRow.project_id == project_id)
    stored = func.coalesce(of_project.scalar_subquery(), 0)
    last = case((stored > Project.last_deployment_iid, stored), else_=Project.last_deployment_iid)
    return session.scalars(
        update_rows(Project)
        .where(Project.id == project_id)
        .values(last_deployment_iid=last + 1)
        .returning(Project.last_deployment_iid)
    ).one()


def _environment(work: Work, project: ProjectView, name: str) -> EnvironmentView:
    """Return the environment of a deployment, created or made available again if needed."""
    try:
        found = get_environment(project.id, name, session=work.session)
    except NotFoundError:
        return create_environment(project.id, name, session=work.session, now=work.now)
    if found.stopped_at is None:
        return found
    work.session.get_one(EnvironmentRow, found.id).stopped_at = None
    return replace(found, stopped_at=None)


def _shown(
    work: Work, found: Iterable[tuple[DeploymentRow, EnvironmentView]]
) -> Sequence[Deployment]:
    pairs = tuple(found)
    ids = (row.user_id for row, _ in pairs if row.user_id)
    named = user_references(ids, base_url=work.settings.base_url, session=work.session)
    return [
        Deployment(
            **columns_of(row, Deployment) | {"environment": Environment.model_validate(view)},
            tag=row.is_tag,
            user=named.get(row.user_id or 0),
        )
        for row, view in pairs
    ]
