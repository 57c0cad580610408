"""What lists of projects show of their Git repositories."""

from domain.git.access import may_read
from domain.git.storage import default_branch, has_branches, repository_path
from domain.projects.types import Repositories, Repository
from domain.projects.views import ProjectView
from web.services import settings


def repositories() -> Repositories:
    """Return what reads the state of a project's repository."""
    return Repositories(_repository_of)


def _repository_of(project: ProjectView) -> Repository:
    """Return what its files tell: two looks at the disk, so that a list can have it.

    Where nothing was pushed, the default branch is the one that the first push is expected to have.
    """
    path = repository_path(settings().repositories_path, project.id, project.created_at)
    branch = default_branch(path).decode(errors="replace") if may_read(project) else None
    return Repository(default_branch=branch, is_empty=not has_branches(path))
