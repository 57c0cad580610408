"""State of Git repositories, for project lists."""

from domain.git.access import can_read_repository
from domain.git.storage import get_repository_path, has_repository_branches, read_default_branch
from domain.projects.types import RepositoryLookup, RepositoryState
from domain.projects.views import ProjectView
from web.services import get_settings


def build_repository_lookup() -> RepositoryLookup:
    """Return a function that reads the state of a project's repository."""
    return RepositoryLookup(_read_repository)


def _read_repository(project: ProjectView) -> RepositoryState:
    """Return the state of a repository with only two disk accesses.

    Before the first push, the default branch is the branch that the push is expected to create.
    """
    path = get_repository_path(get_settings().repositories_path, project.id, project.created_at)
    branch = (
        read_default_branch(path).decode(errors="replace") if can_read_repository(project) else None
    )
    return RepositoryState(default_branch=branch, is_empty=not has_repository_branches(path))
