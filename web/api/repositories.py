"""What the API says of the repository of a project."""

from domain.projects.views import ProjectView
from domain.repositories.access import may_read
from domain.repositories.storage import default_branch, has_branches, repository_path
from web.api.schemas.projects.projects import Repository
from web.services import settings


def repository_of(project: ProjectView) -> Repository:
    """Return what its files tell: two looks at the disk, so that a list can have it.

    Where nothing was pushed, the default branch is the one that the first push is expected to have.
    """
    path = repository_path(settings().repositories_path, project.id, project.created_at)
    branch = default_branch(path).decode(errors="replace") if may_read(project) else None
    return Repository(default_branch=branch, is_empty=not has_branches(path))
