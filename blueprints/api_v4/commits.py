"""/api/v4/projects/:id/repository/commits/:revision: a commit of the hosted repository."""

from http import HTTPStatus

from blueprints.git.commits import read_commit
from domain.ci_cd.types import CommitQuery, RepositoryCommit
from domain.projects.views import ProjectView
from web.api.openapi.view_descriptions import declare_error_statuses
from web.api.operations import ResourceBlueprint, declare_operation

commits = ResourceBlueprint(
    "commits", __name__, url_prefix="/projects/<path:reference>/repository/commits"
)


@commits.get("/<path:revision>", endpoint="show")
@declare_error_statuses(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)
@declare_operation("commits.show", query=CommitQuery, returns=RepositoryCommit)
def show(project: ProjectView, revision: str, query: CommitQuery) -> RepositoryCommit:
    """Show a commit of a project's repository.

    The commit must have been pushed. A commit that has statuses but was never pushed returns 404.
    """
    return read_commit(project, revision, with_stats=query.stats)
