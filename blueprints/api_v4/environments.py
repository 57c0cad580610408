"""/api/v4/projects/:id/environments: the environments of a project."""

from typing import Any

from flask import Blueprint, Response

from domain.accounts.roles import Role
from domain.alerts import environments as domain
from domain.alerts.environments import EnvironmentFilter, EnvironmentView
from domain.clock import written
from domain.errors import InvalidError
from domain.oauth.presented_tokens.bearer import Bearer
from web.access.marks import bearer as with_bearer
from web.api import parameters as read
from web.api.offset_pages import list_query, offset_response, requested_page
from web.api.projects import project_of
from web.extensions import db
from web.http.json_responses import json_response
from web.services import now

environments = Blueprint(
    "environments", __name__, url_prefix="/projects/<path:reference>/environments"
)
_READING = ("api", "read_api", "read")


@environments.get("")
@with_bearer(*_READING)
def index(bearer: Bearer, reference: str) -> Response:
    """List environments, all or by name."""
    project = project_of(reference, bearer, at_least=Role.REPORTER)
    given = list_query("name", "search", only_order="asc")
    name, search = read.text(given, "name"), read.text(given, "search")
    if name and search:
        message = "name, search are mutually exclusive"
        raise InvalidError(message)
    wanted = EnvironmentFilter(project_id=project.id, name=name, search=search)
    wanted_page = requested_page()
    found, total = domain.numbered_environments(
        wanted, offset=wanted_page.offset, limit=wanted_page.size, session=db.session()
    )
    return offset_response([_as_json(each) for each in found], wanted_page, total=total)


@environments.get("/<int:environment_id>")
@with_bearer(*_READING)
def show(bearer: Bearer, reference: str, environment_id: int) -> Response:
    """Show an environment."""
    project = project_of(reference, bearer, at_least=Role.REPORTER)
    found = domain.get_numbered_environment(project.id, environment_id, session=db.session())
    return json_response(_as_json(found))


@environments.post("")
@with_bearer("api")
def create(bearer: Bearer, reference: str) -> Response:
    """Create an environment."""
    project = project_of(reference, bearer, at_least=Role.MAINTAINER)
    name = read.text(read.all_parameters(), "name")
    made = domain.create_environment(project.id, name, session=db.session(), now=now())
    return json_response(_as_json(made), 201)


@environments.delete("/<int:environment_id>")
@with_bearer("api")
def delete(bearer: Bearer, reference: str, environment_id: int) -> Response:
    """Delete an environment."""
    project = project_of(reference, bearer, at_least=Role.MAINTAINER)
    domain.delete_environment(project.id, environment_id, session=db.session())
    return Response(status=204)


def _as_json(environment: EnvironmentView) -> dict[str, Any]:
    return {
        "id": environment.id,
        "name": environment.name,
        "slug": environment.slug,
        "external_url": None,
        "state": "available",
        "created_at": written(environment.created_at),
    }
