"""/api/v4/projects/:id/repository/commits/:revision: a commit of the hosted repository."""

from http import HTTPStatus

from blueprints.git.commits import read_commit
from domain.ci_cd.types import CommitQuery, RepositoryCommit
from domain.projects.views import ProjectView
from web.api.description.described import rejects_with
from web.api.operations import ResourceBlueprint, operation

commits = ResourceBlueprint(
    "commits", __name__, url_prefix="/projects/<path:reference>/repository/commits"
)


@commits.get("/<path:revision>", endpoint="show")
@rejects_with(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)
@operation("commits.show", query=CommitQuery, returns=RepositoryCommit)
def show(project: ProjectView, revision: str, query: CommitQuery) -> RepositoryCommit:
    """Show a commit of a project's repository.

    The commit must have been pushed. A commit that only has statuses is not found.
    """
    return read_commit(project, revision, with_stats=query.stats)
