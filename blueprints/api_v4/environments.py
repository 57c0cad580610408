"""/api/v4/projects/:id/environments: the environments of a project."""

from flask import Blueprint

from domain.alerts import environments as domain
from domain.alerts.environments import EnvironmentFilter
from domain.errors import InvalidError
from domain.projects.views import ProjectView
from web.api.operations import Found, operation
from web.api.schemas.environments import Environment, EnvironmentBody, EnvironmentQuery
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
    return Environment.of(
        domain.create_environment(project.id, body.name, session=db.session(), now=now())
    )


@environments.delete("/<int:environment_id>")
@operation("environments.delete")
def delete(project: ProjectView, environment_id: int) -> None:
    """Delete an environment."""
    domain.delete_environment(project.id, environment_id, session=db.session())
