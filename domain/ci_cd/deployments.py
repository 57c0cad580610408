"""Deployments: which commit went to which environment, and how that ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, case, func, select, update
from sqlalchemy.orm import Session

from domain.alerts.environments import (
    EnvironmentView,
    create_environment,
    get_environment,
    get_numbered_environment,
    view_of,
)
from domain.ci_cd.people import Reporter, reporters
from domain.database.paging import Listed, ListPart, fetch_part
from domain.errors import InvalidError, NotFoundError, QueryError
from models import Deployment, Environment, Project

#: In the order of a deployment's life.
STATUSES = ("created", "running", "success", "failed", "canceled", "blocked")
_FINISHED = frozenset({"success", "failed", "canceled"})
_ORDERS = {
    "id": Deployment.id,
    "iid": Deployment.iid,
    "created_at": Deployment.id,  # in the order of ids as well
    "updated_at": Deployment.updated_at,
    "finished_at": Deployment.finished_at,
    "ref": Deployment.ref,
}


@dataclass(frozen=True, kw_only=True)
class DeploymentView:
    """A deployment."""

    id: int
    iid: int
    sha: str
    ref: str
    is_tag: bool
    status: str
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    environment: EnvironmentView
    reporter: Reporter | None


@dataclass(frozen=True, kw_only=True)
class DeploymentFilter:
    """Which deployments of a project a list has."""

    project_id: int
    environment: str | None = None
    status: str | None = None
    updated_after: datetime | None = None
    updated_before: datetime | None = None
    finished_after: datetime | None = None
    finished_before: datetime | None = None

    @property
    def is_by_end(self) -> bool:
        """Return whether it filters by the end."""
        return self.finished_after is not None or self.finished_before is not None


@dataclass(frozen=True, kw_only=True)
class DeploymentReport:
    """A new deployment, as CI reports it."""

    environment: str
    sha: str
    ref: str
    is_tag: bool
    status: str
    user_id: int


def check_order(wanted: DeploymentFilter, order_by: str) -> None:
    """Raise QueryError for a filter with an order that it does not go with."""
    if wanted.is_by_end and (order_by != "finished_at" or wanted.status != "success"):
        message = (
            "finished_after and finished_before go with order_by=finished_at and status=success."
        )
        raise QueryError(message, field="order_by")


def list_deployments(
    wanted: DeploymentFilter, part: ListPart, *, session: Session
) -> Listed[DeploymentView]:
    """Return a part of a project's deployments."""
    statement = select(Deployment, Environment).join(
        Environment, Environment.id == Deployment.environment_id
    )
    found = fetch_part(statement.where(*_conditions(wanted)), _ORDERS, part, session=session)
    people = reporters((row[0].user_id for row in found.items), session=session)
    items = tuple(
        _view(row[0], view_of(row[1]), people.get(row[0].user_id))
        for row in found.items  # a page by key has a column more
    )
    return Listed(items=items, total=found.total, next_cursor=found.next_cursor)


def _conditions(wanted: DeploymentFilter) -> list[ColumnElement[bool]]:
    bounds = (
        (Deployment.updated_at, wanted.updated_after, wanted.updated_before),
        (Deployment.finished_at, wanted.finished_after, wanted.finished_before),
    )
    found: list[ColumnElement[bool]] = [Deployment.project_id == wanted.project_id]
    if wanted.environment:
        found.append(Environment.name == wanted.environment)
    if wanted.status:
        found.append(Deployment.status == wanted.status)
    for column, after, before in bounds:
        found += [column >= after] if after else []
        found += [column <= before] if before else []
    return found


def latest_deployments(
    project_id: int, environment: EnvironmentView, *, most: int, session: Session
) -> list[DeploymentView]:
    """Return the newest deployments of an environment, the newest first, at most `most`."""
    rows = session.scalars(
        select(Deployment)
        .where(Deployment.project_id == project_id, Deployment.environment_id == environment.id)
        .order_by(Deployment.id.desc())
        .limit(most)
    ).all()
    people = reporters((row.user_id for row in rows), session=session)
    return [_view(row, environment, people.get(row.user_id)) for row in rows]


def newest_deployments(
    environments: Sequence[EnvironmentView], *, session: Session
) -> dict[int, DeploymentView]:
    """Return the newest deployment of each environment that has one, by the environment's id."""
    by_id = {each.id: each for each in environments}
    newest = (
        select(func.max(Deployment.id))
        .where(Deployment.environment_id == Environment.id)
        .correlate(Environment)
        .scalar_subquery()
    )
    ids = session.scalars(select(newest).where(Environment.id.in_(by_id))).all()
    rows = session.scalars(select(Deployment).where(Deployment.id.in_(ids)))
    return {row.environment_id: _view(row, by_id[row.environment_id], None) for row in rows}


def get_deployment(project_id: int, deployment_id: int, *, session: Session) -> DeploymentView:
    """Return a deployment of a project, or raise NotFoundError."""
    row = _get(project_id, deployment_id, session=session)
    people = reporters([row.user_id], session=session)
    environment = get_numbered_environment(project_id, row.environment_id, session=session)
    return _view(row, environment, people.get(row.user_id))


def _get(project_id: int, deployment_id: int, *, session: Session) -> Deployment:
    return _found(_one(project_id, deployment_id), session=session)


def _locked(project_id: int, deployment_id: int, *, session: Session) -> Deployment:
    """Return a deployment whose status nobody else changes until the transaction ends."""
    one = _one(project_id, deployment_id).with_for_update(key_share=True)
    return _found(one.execution_options(populate_existing=True), session=session)


def _one(project_id: int, deployment_id: int) -> Select[Deployment]:
    return select(Deployment).where(
        Deployment.project_id == project_id, Deployment.id == deployment_id
    )


def _found(statement: Select[Deployment], *, session: Session) -> Deployment:
    row = session.scalar(statement)
    if row is None:
        message = "Deployment not found in this project."
        raise NotFoundError(message)
    return row


def create_deployment(
    project_id: int, report: DeploymentReport, *, session: Session, now: datetime
) -> DeploymentView:
    """Store a deployment, and its environment if that is new."""
    iid = _next_iid(project_id, session=session)
    environment = _environment(project_id, report.environment, session=session, now=now)
    row = Deployment(
        project_id=project_id,
        iid=iid,
        environment_id=environment.id,
        sha=report.sha,
        ref=report.ref,
        is_tag=report.is_tag,
        status=report.status,
        user_id=report.user_id,
        created_at=now,
        updated_at=now,
        finished_at=now if report.status in _FINISHED else None,
    )
    session.add(row)
    session.flush()
    return get_deployment(project_id, row.id, session=session)


def _next_iid(project_id: int, *, session: Session) -> int:
    """Return a number that no deployment of the project ever had.

    The row of the project is locked as its update does, so that alerts, which refer to it, go on.
    """
    # The previous release does not count: what it stored meanwhile is found in the table.
    of_project = select(func.max(Deployment.iid)).where(Deployment.project_id == project_id)
    stored = func.coalesce(of_project.scalar_subquery(), 0)
    last = case((stored > Project.last_deployment_iid, stored), else_=Project.last_deployment_iid)
    return session.scalars(
        update(Project)
        .where(Project.id == project_id)
        .values(last_deployment_iid=last + 1)
        .returning(Project.last_deployment_iid)
        .execution_options(synchronize_session=False)
    ).one()


def _environment(project_id: int, name: str, *, session: Session, now: datetime) -> EnvironmentView:
    try:
        return get_environment(project_id, name, session=session)
    except NotFoundError:
        return create_environment(project_id, name, session=session, now=now)


def change_deployment(
    project_id: int, deployment_id: int, status: str, *, session: Session, now: datetime
) -> DeploymentView:
    """Change the status of a deployment; the one it has is no change."""
    row = _locked(project_id, deployment_id, session=session)
    if row.status != status:
        if row.status in _FINISHED and status not in _FINISHED:
            message = f"A deployment that ended as {row.status} cannot become {status}."
            raise InvalidError(message, field="status")
        row.status, row.updated_at = status, now
        if status in _FINISHED:
            row.finished_at = now
        session.flush()
    return get_deployment(project_id, deployment_id, session=session)


def delete_deployment(project_id: int, deployment_id: int, *, session: Session) -> None:
    """Delete a deployment that has ended; raise InvalidError while it runs."""
    row = _locked(project_id, deployment_id, session=session)
    if row.status == "running":
        message = "This deployment is running: end it first, with the status canceled."
        raise InvalidError(message, field="status")
    session.delete(row)


def _view(
    row: Deployment, environment: EnvironmentView, reporter: Reporter | None
) -> DeploymentView:
    return DeploymentView(
        id=row.id,
        iid=row.iid,
        sha=row.sha,
        ref=row.ref,
        is_tag=row.is_tag,
        status=row.status,
        created_at=row.created_at,
        updated_at=row.updated_at,
        finished_at=row.finished_at,
        environment=environment,
        reporter=reporter,
    )
