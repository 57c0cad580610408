"""/api/v4/projects/:id/job_token_scope: what limits the tokens of CI jobs of a project.

This service makes no tokens for jobs: it keeps the limits for the external CI that does.
"""

from flask import Blueprint

from domain.projects import editing
from domain.projects.changes import record_edit
from domain.projects.views import ProjectView, Viewer
from web.api.operations import operation
from web.api.schemas.projects.job_token_scope import JobTokenScope, JobTokenScopeBody
from web.extensions import db
from web.http.work import work

job_token_scope = Blueprint(
    "job_token_scope", __name__, url_prefix="/projects/<string:reference>/job_token_scope"
)


@job_token_scope.get("")
@operation("job_token_scope.show", returns=JobTokenScope)
def show(project: ProjectView) -> JobTokenScope:
    """Show the limits."""
    return JobTokenScope.of(project.job_token_scope)


@job_token_scope.patch("")
@operation("job_token_scope.change", body=JobTokenScopeBody, status=204)
def change(project: ProjectView, viewer: Viewer, body: JobTokenScopeBody) -> None:
    """Change the limits."""
    limits = {
        "limits_job_token_to_others": body.outbound_enabled,
        "limits_job_tokens_of_others": body.inbound,
    }
    changes = editing.edit_project(project.id, limits, by=viewer, session=db.session())
    record_edit(work(), project.namespace, changes)
