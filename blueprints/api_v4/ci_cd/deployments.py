"""/api/v4/projects/:id/deployments: what was brought to which environment."""

from flask import Blueprint

from domain.ci_cd import deployments as domain
from domain.ci_cd.deployments import DeploymentFilter, DeploymentReport
from domain.oauth.presented_tokens.bearer import Bearer
from domain.projects.views import ProjectView
from domain.types.base import Found
from web.api.operations import operation
from web.api.schemas.ci_cd.deployments import (
    Deployment,
    DeploymentBody,
    DeploymentChange,
    DeploymentQuery,
)
from web.extensions import db
from web.services import now

deployments = Blueprint(
    "deployments", __name__, url_prefix="/projects/<path:reference>/deployments"
)


@deployments.get("")
@operation("deployments.index", query=DeploymentQuery, returns=Deployment)
def index(project: ProjectView, query: DeploymentQuery) -> Found[Deployment]:
    """List deployments."""
    wanted = DeploymentFilter(
        project_id=project.id,
        environment=query.environment,
        status=query.status,
        updated_after=query.updated_after,
        updated_before=query.updated_before,
        finished_after=query.finished_after,
        finished_before=query.finished_before,
    )
    domain.check_order(wanted, query.order_by)
    return Found.of(
        domain.list_deployments(wanted, query.part, session=db.session()), Deployment.of
    )


@deployments.get("/<int:deployment_id>")
@operation("deployments.show", returns=Deployment)
def show(project: ProjectView, deployment_id: int) -> Deployment:
    """Show a deployment."""
    return Deployment.of(domain.get_deployment(project.id, deployment_id, session=db.session()))


@deployments.post("")
@operation("deployments.create", body=DeploymentBody, returns=Deployment, status=201)
def create(project: ProjectView, body: DeploymentBody, bearer: Bearer) -> Deployment:
    """Report a deployment."""
    report = DeploymentReport(
        environment=body.environment,
        sha=body.sha,
        ref=body.ref,
        is_tag=body.tag,
        status=body.status,
        user_id=bearer.user_id,
    )
    return Deployment.of(
        domain.create_deployment(project.id, report, session=db.session(), now=now())
    )


@deployments.put("/<int:deployment_id>")
@operation("deployments.edit", body=DeploymentChange, returns=Deployment)
def edit(project: ProjectView, deployment_id: int, body: DeploymentChange) -> Deployment:
    """Change the status of a deployment."""
    return Deployment.of(
        domain.change_deployment(
            project.id, deployment_id, body.status, session=db.session(), now=now()
        )
    )


@deployments.delete("/<int:deployment_id>")
@operation("deployments.delete")
def delete(project: ProjectView, deployment_id: int) -> None:
    """Delete a deployment that has ended."""
    domain.delete_deployment(project.id, deployment_id, session=db.session())
