"""/api/v4/projects/:id/environments: the environments of a project."""

from flask import Blueprint

from domain.alerts import environments as domain
from domain.alerts.environments import EnvironmentFilter
from domain.errors import InvalidError
from domain.projects.views import ProjectView
from domain.types.base import Found
from web.api.operations import operation
from web.api.schemas.ci_cd.environments import (
    Environment,
    EnvironmentBody,
    EnvironmentChange,
    EnvironmentQuery,
)
from web.extensions import db
from web.services import now

environments = Blueprint(
    "environments", __name__, url_prefix="/projects/<path:reference>/environments"
)


@environments.get("")
@operation("environments.index", query=EnvironmentQuery, returns=Environment)
def index(project: ProjectView, query: EnvironmentQuery) -> Found[Environment]:
    """List environments, all or by name."""
    if query.name and query.search:
        message = "name, search are mutually exclusive"
        raise InvalidError(message)
    wanted = EnvironmentFilter(project_id=project.id, name=query.name, search=query.search)
    found, total = domain.numbered_environments(
        wanted, offset=query.offset, limit=query.size, session=db.session()
    )
    return Found(items=[Environment.of(each) for each in found], total=total)


@environments.get("/<int:environment_id>")
@operation("environments.show", returns=Environment)
def show(project: ProjectView, environment_id: int) -> Environment:
    """Show an environment."""
    return Environment.of(
        domain.get_numbered_environment(project.id, environment_id, session=db.session())
    )


@environments.post("")
@operation("environments.create", body=EnvironmentBody, returns=Environment, status=201)
def create(project: ProjectView, body: EnvironmentBody) -> Environment:
    """Create an environment."""
    session = db.session()
    made = domain.create_environment(project.id, body.name, session=session, now=now())
    return Environment.of(
        domain.set_external_url(project.id, made.id, body.external_url, session=session)
    )


@environments.put("/<int:environment_id>")
@operation("environments.edit", body=EnvironmentChange, returns=Environment)
def edit(project: ProjectView, environment_id: int, body: EnvironmentChange) -> Environment:
    """Change the external URL of an environment."""
    return Environment.of(
        domain.set_external_url(project.id, environment_id, body.external_url, session=db.session())
    )


@environments.delete("/<int:environment_id>")
@operation("environments.delete")
def delete(project: ProjectView, environment_id: int) -> None:
    """Delete an environment."""
    domain.delete_environment(project.id, environment_id, session=db.session())
