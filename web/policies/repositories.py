"""State of Git repositories, for lists of projects."""

from domain.git.access import may_read
from domain.git.storage import default_branch, has_branches, repository_path
from domain.projects.types import Repositories, Repository
from domain.projects.views import ProjectView
from web.services import settings


def repositories() -> Repositories:
    """Return a function that reads the state of a project's repository."""
    return Repositories(_repository_of)


def _repository_of(project: ProjectView) -> Repository:
    """Return the state of a repository, which takes only two disk accesses.

    Before the first push, the default branch is the branch that it is expected to create.
    """
    path = repository_path(settings().repositories_path, project.id, project.created_at)
    branch = default_branch(path).decode(errors="replace") if may_read(project) else None
    return Repository(default_branch=branch, is_empty=not has_branches(path))
