"""Repositories and tags in the registry, as reported by its notifications.

The name of a repository is its project's full path in lowercase, or starts with that path and a
slash.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, and_, func, or_, select
from sqlalchemy.orm import Session

from domain.core.database.pagination import KeysetPage, KeysetRange, fetch_page
from domain.core.errors import NotFoundError, QueryError
from domain.core.types.base import get_column_values
from models import (
    FormerPath,
    Project,
    RegistryManifest,
    RegistryRemoval,
    RegistryRepository,
    RegistryTag,
)
from models.case_folding import fold_text

#: Patterns from Docker's registry (github.com/distribution/reference).
_COMPONENT = r"[a-z0-9]++(?:(?:\.|__?+|-++)[a-z0-9]++)*"
_NAME_PATTERN = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
TAG_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
DIGEST_PATTERN = re.compile(r"[a-z0-9]+(?:[+._-][a-z0-9]+)*:[0-9a-fA-F]{32,128}")
MAX_NAME_LENGTH = 255
#: Minimum number of parts in a project's path: a group and a project.
_MIN_PATH_PARTS = 2
_SHORT_REVISION_LENGTH = 9
_REPOSITORY, _TAG, _MANIFEST = RegistryRepository, RegistryTag, RegistryManifest


def is_repository_name(name: str) -> bool:
    """Return whether a name is valid for a registry repository."""
    return len(name) <= MAX_NAME_LENGTH and _NAME_PATTERN.fullmatch(name) is not None


def find_root_repository_name(project_path: str) -> str | None:
    """Return the repository name that equals a project's path, or None if the name is not valid."""
    name = project_path.lower()
    return name if is_repository_name(name) else None


def belongs_to_deleted_project(name: str, *, session: Session) -> bool:
    """Return whether a repository is waiting to be removed with its project.

    Until it is removed, the repository is not accessible. A new project with the same path must not
    receive its images.
    """
    found = (
        select(RegistryRepository.id)
        .join(Project, Project.id == RegistryRepository.project_id)
        .where(RegistryRepository.name == name, Project.deleted_at.is_not(None))
    )
    return session.scalar(found) is not None


def find_repository_project(name: str, *, session: Session) -> Project | None:
    """Return the project to which a repository belongs, or None.

    Images keep their names when a project's path changes, so previous paths also match. A project
    cannot contain other projects, so at most one current path matches. If a current path and a
    previous path match, the longer path is used.
    """
    if not is_repository_name(name):
        return None
    parts = name.split("/")
    beginnings = [
        fold_text("/".join(parts[:end])) for end in range(_MIN_PATH_PARTS, len(parts) + 1)
    ]
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


class RepositoryNotFoundError(NotFoundError):
    """Error for a repository that does not exist, or whose project the caller cannot see."""

    def __init__(self) -> None:
        """Set a message that does not reveal whether the repository exists."""
        super().__init__("Registry repository not found, or you do not have access.")


@dataclass(frozen=True, kw_only=True)
class RepositoryView:
    """A registry repository, with its project and the number of its tags."""

    id: int
    project_id: int
    project_path: str
    #: Full name in the registry.
    path: str
    created_at: datetime
    tags_count: int
    #: True if the worker is going to delete the repository.
    is_going: bool = False
    #: Reason why the worker has not been able to delete the repository or its tags.
    failure: str | None = None

    @property
    def name(self) -> str:
        """The part of the repository name below the project's path, or an empty string.

        If the repository name starts with a previous path of the project, the value is the full
        name.
        """
        root = self.project_path.lower()
        if self.path != root and not self.path.startswith(f"{root}/"):
            return self.path
        return self.path[len(root) :].lstrip("/")


@dataclass(frozen=True, kw_only=True)
class TagView:
    """A tag, with the digest, size and push time of its image."""

    name: str
    #: Repository name and tag, such as `acme/shop:v1`.
    path: str
    digest: str
    pushed_at: datetime
    #: Size of the image in bytes. None if it is unknown.
    total_size: int | None = None
    config_digest: str | None = None

    @property
    def created_at(self) -> datetime:
        """The time of the push, which clients treat as the time of creation."""
        return self.pushed_at

    @property
    def revision(self) -> str | None:
        """The configuration's digest in hexadecimal, which clients use as the image's ID."""
        return self.config_digest.partition(":")[2] if self.config_digest else None

    @property
    def short_revision(self) -> str | None:
        """The first digits of the revision."""
        return self.revision[:_SHORT_REVISION_LENGTH] if self.revision else None


@dataclass(frozen=True, kw_only=True)
class TagPage:
    """A page of tags, ordered by name, and whether more tags follow."""

    tags: tuple[TagView, ...]
    has_more: bool


def _is_existing_repository() -> ColumnElement[bool]:
    return or_(_REPOSITORY.removed_at.is_(None), _REPOSITORY.pushed_at > _REPOSITORY.removed_at)


def _is_existing_tag() -> ColumnElement[bool]:
    """Return an SQL condition that matches existing tags.

    The condition requires a query from `_join_tags_with_manifests`.
    """
    return and_(
        _TAG.digest.is_not(None),
        or_(_TAG.removed_at.is_(None), _TAG.pushed_at > _TAG.removed_at),
        or_(_MANIFEST.deleted_at.is_(None), _TAG.pushed_at > _MANIFEST.deleted_at),
        or_(_REPOSITORY.removed_at.is_(None), _TAG.pushed_at > _REPOSITORY.removed_at),
    )


def _join_tags_with_manifests(
    statement: Select[*tuple[object, ...]],
) -> Select[*tuple[object, ...]]:
    of_tag = and_(_MANIFEST.repository_id == _TAG.repository_id, _MANIFEST.digest == _TAG.digest)
    return (
        statement.select_from(_TAG)
        .join(_REPOSITORY, _REPOSITORY.id == _TAG.repository_id)
        .outerjoin(_MANIFEST, of_tag)
        .where(_is_existing_tag())
    )


def list_repositories(
    project_ids: Sequence[int], *, offset: int, limit: int, session: Session
) -> tuple[tuple[RepositoryView, ...], int]:
    """Return a page of the projects' repositories, ordered by ID, and the total number."""
    wanted = and_(_REPOSITORY.project_id.in_(project_ids), _is_existing_repository())
    total = session.scalar(select(func.count()).select_from(_REPOSITORY).where(wanted)) or 0
    rows = session.execute(
        select(_REPOSITORY, Project.path)
        .join(Project, Project.id == _REPOSITORY.project_id)
        .where(wanted)
        .order_by(_REPOSITORY.id)
        .offset(offset)
        .limit(limit)
    ).all()
    return _build_repository_views([(row[0], row[1]) for row in rows], session), total


def get_repository_page(
    project_id: int, keyset_range: KeysetRange, *, session: Session
) -> KeysetPage[RepositoryView]:
    """Return a page of the repositories of a project, newest first."""
    statement = (
        select(_REPOSITORY, Project.path)
        .join(Project, Project.id == _REPOSITORY.project_id)
        .where(_REPOSITORY.project_id == project_id, _is_existing_repository())
    )
    rows = fetch_page(
        statement,
        _REPOSITORY.id,
        keyset_range,
        session=session,
        view=lambda row: _RepositoryRow(row[0].id, row[0], row[1]),
    )
    views = _build_repository_views(
        [(each.repository, each.project_path) for each in rows.items], session
    )
    return rows.with_items(views)


class _RepositoryRow(NamedTuple):
    id: int
    repository: RegistryRepository
    project_path: str


def find_project_ids_in_group(group_path: str, *, session: Session) -> tuple[int, ...]:
    """Return the IDs of all projects in a group and its subgroups."""
    # Paths are ASCII (`domain/accounts/names.py`).
    prefix = f"{group_path.lower()}/"
    lowered = func.lower(Project.path)
    return tuple(
        session.scalars(select(Project.id).where(func.substr(lowered, 1, len(prefix)) == prefix))
    )


def get_repository(
    repository_id: int, *, session: Session, project_id: int | None = None
) -> RepositoryView:
    """Return a repository by its ID.

    If `project_id` is given, the repository must belong to this project. Raise NotFoundError if
    there is no such repository.
    """
    wanted = [
        _REPOSITORY.id == repository_id,
        _is_existing_repository(),
        Project.deleted_at.is_(None),
    ]
    if project_id is not None:
        wanted.append(_REPOSITORY.project_id == project_id)
    return _get_repository(wanted, session)


def get_repository_to_remove(repository_id: int, *, session: Session) -> RepositoryView:
    """Return a repository, even if its project was deleted.

    Raise NotFoundError if there is no repository with this ID.
    """
    return _get_repository([_REPOSITORY.id == repository_id, _is_existing_repository()], session)


def _get_repository(conditions: Sequence[ColumnElement[bool]], session: Session) -> RepositoryView:
    row = session.execute(
        select(_REPOSITORY, Project.path)
        .join(Project, Project.id == _REPOSITORY.project_id)
        .where(*conditions)
    ).first()
    if row is None:
        raise RepositoryNotFoundError
    return _build_repository_views([(row[0], row[1])], session)[0]


def _build_repository_views(
    rows: Sequence[tuple[RegistryRepository, str]], session: Session
) -> tuple[RepositoryView, ...]:
    ids = [row.id for row, _ in rows]
    counts = _count_tags(ids, session)
    removals = session.scalars(
        select(RegistryRemoval)
        .where(RegistryRemoval.repository_id.in_(ids))
        .order_by(RegistryRemoval.id)
    ).all()
    going = {each.repository_id for each in removals if each.rule is None}
    failures = {each.repository_id: each.failure for each in removals if each.failure}
    return tuple(
        RepositoryView(
            **get_column_values(row, RepositoryView),
            project_path=project_path,
            path=row.name,
            tags_count=counts.get(row.id, 0),
            is_going=row.id in going,
            failure=failures.get(row.id),
        )
        for row, project_path in rows
    )


def _count_tags(ids: Sequence[int], session: Session) -> dict[int, int]:
    counted = _join_tags_with_manifests(select(_TAG.repository_id, func.count()))
    rows = session.execute(counted.where(_TAG.repository_id.in_(ids)).group_by(_TAG.repository_id))
    return {int(str(row[0])): int(str(row[1])) for row in rows}


def _select_tags(repository: RepositoryView) -> Select[*tuple[object, ...]]:
    columns = select(
        _TAG.name, _TAG.digest, _TAG.pushed_at, _MANIFEST.total_size, _MANIFEST.config_digest
    )
    return (
        _join_tags_with_manifests(columns)
        .where(_TAG.repository_id == repository.id)
        .order_by(_TAG.name)
    )


def list_all_tags(repository: RepositoryView, *, session: Session) -> tuple[TagView, ...]:
    """Return all tags of a repository, ordered by name."""
    return _build_tag_views(_select_tags(repository), repository, session)


def list_tags_with_offset(
    repository: RepositoryView, *, offset: int, limit: int, session: Session
) -> tuple[TagView, ...]:
    """Return a page of a repository's tags, ordered by name and starting at an offset."""
    return _build_tag_views(
        _select_tags(repository).offset(offset).limit(limit), repository, session
    )


def list_tags_after(
    repository: RepositoryView, name: str, *, limit: int, session: Session
) -> TagPage:
    """Return the tags that follow a name, or the first tags if the name is empty.

    Raise QueryError for a name that no tag can have.
    """
    statement = _select_tags(repository)
    if name:
        if not TAG_PATTERN.fullmatch(name):
            message = "This page of the list does not exist. Go to the first page."
            raise QueryError(message, field="cursor")
        statement = statement.where(_TAG.name > name)
    found = _build_tag_views(statement.limit(limit + 1), repository, session)
    return TagPage(tags=found[:limit], has_more=len(found) > limit)


def get_tag(repository: RepositoryView, name: str, *, session: Session) -> TagView:
    """Return the tag with the given name.

    Raise NotFoundError if the repository has no such tag.
    """
    found = _build_tag_views(
        _select_tags(repository).where(_TAG.name == name.replace("\x00", "\ufffd")),
        repository,
        session,
    )
    if not found:
        raise NotFoundError("Tag not found.")
    return found[0]


def _build_tag_views(
    statement: Select[*tuple[object, ...]], repository: RepositoryView, session: Session
) -> tuple[TagView, ...]:
    rows = session.execute(statement)
    return tuple(
        TagView(**get_column_values(row, TagView), path=f"{repository.path}:{row.name}")
        for row in rows
    )
