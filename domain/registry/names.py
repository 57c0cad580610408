"""Names of image repositories: the project's full path in lower case, and below it."""

import re

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from models import FormerPath, Project, RegistryRepository
from models.folding import fold

#: As Docker's registry checks them (github.com/distribution/reference).
_COMPONENT = r"[a-z0-9]++(?:(?:\.|_|__|-++)[a-z0-9]++)*+"
_NAME = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*+")
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
DIGEST = re.compile(r"[a-z0-9]+(?:[+._-][a-z0-9]+)*:[0-9a-fA-F]{32,128}")
LONGEST_NAME = 255
#: A group and a project.
_FEWEST_PARTS = 2


def is_repository_name(name: str) -> bool:
    """Return whether registries take a name."""
    return len(name) <= LONGEST_NAME and _NAME.fullmatch(name) is not None


def root_name(project_path: str) -> str | None:
    """Return the repository that has a project's path; None if registries take no such name."""
    name = project_path.lower()
    return name if is_repository_name(name) else None


def is_of_deleted_project(name: str, *, session: Session) -> bool:
    """Return whether a repository waits to be removed with its project.

    Until then nobody reaches it: a new project of the same path is not to get its images.
    """
    found = (
        select(RegistryRepository.id)
        .join(Project, Project.id == RegistryRepository.project_id)
        .where(RegistryRepository.name == name, Project.deleted_at.is_not(None))
    )
    return session.scalar(found) is not None


def find_project(name: str, *, session: Session) -> Project | None:
    """Return the project that a repository belongs to, or None.

    Images keep their names when a project moves, so that a former path of a project counts as well.
    No group or project lies in a project; of a present path and a former one the longer counts.
    """
    if not is_repository_name(name):
        return None
    parts = name.split("/")
    beginnings = [fold("/".join(parts[:end])) for end in range(_FEWEST_PARTS, len(parts) + 1)]
    present = select(Project.id, Project.path_key).where(
        Project.path_key.in_(beginnings), Project.deleted_at.is_(None)
    )
    former = select(FormerPath.project_id, FormerPath.path_key).where(
        FormerPath.path_key.in_(beginnings), FormerPath.project_id.is_not(None)
    )
    found = present.union_all(former).subquery()
    return session.scalar(
        select(Project)
        .join(found, found.c.id == Project.id)
        .order_by(func.length(found.c.path_key).desc())
        .limit(1)
    )
