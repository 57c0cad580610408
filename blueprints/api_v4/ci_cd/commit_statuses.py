"""/api/v4/projects/:id/statuses/:sha: what external CI says of commits."""

from flask import Blueprint

from domain.ci_cd import commit_statuses as domain
from domain.ci_cd.commit_statuses import StatusFilter, StatusReport
from domain.oauth.presented_tokens.bearer import Bearer
from domain.projects.views import ProjectView
from domain.types.base import Found
from web.api.operations import operation
from web.api.schemas.ci_cd.commit_statuses import CommitStatus, CommitStatusBody, CommitStatusQuery
from web.extensions import db
from web.services import now

commit_statuses = Blueprint("commit_statuses", __name__, url_prefix="/projects/<path:reference>")


@commit_statuses.get("/repository/commits/<sha:sha>/statuses")
@operation("commit_statuses.index", query=CommitStatusQuery, returns=CommitStatus)
def index(project: ProjectView, sha: str, query: CommitStatusQuery) -> Found[CommitStatus]:
    """List the statuses of a commit."""
    wanted = StatusFilter(
        project_id=project.id,
        sha=sha,
        ref=query.ref,
        stage=query.stage,
        name=query.name,
        pipeline_id=query.pipeline_id,
    )
    return Found.of(domain.list_statuses(wanted, query.part, session=db.session()), CommitStatus.of)


@commit_statuses.post("/statuses/<sha:sha>")
@operation("commit_statuses.create", body=CommitStatusBody, returns=CommitStatus, status=201)
def create(project: ProjectView, sha: str, body: CommitStatusBody, bearer: Bearer) -> CommitStatus:
    """Report the status of a commit, or update the status that this job reported before."""
    report = StatusReport(
        sha=sha,
        status=body.state,
        name=body.job,
        user_id=bearer.user_id,
        ref=body.ref,
        stage=body.stage,
        target_url=body.target_url,
        description=body.description,
        coverage=body.coverage,
        allow_failure=body.allow_failure,
        pipeline_id=body.pipeline_id,
    )
    report.check()
    return CommitStatus.of(
        domain.report_status(project.id, report, session=db.session(), now=now())
    )
