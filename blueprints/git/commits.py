"""Commits of hosted repositories, as the API returns them."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from flask import url_for

from domain.ci_cd.combined_status import find_combined_status
from domain.ci_cd.types import CommitStats, RepositoryCommit
from domain.core.database.locks import commit_to_release_locks
from domain.git.commits import ChangedLines, CommitDetails, CommitReader
from domain.git.errors import GitUnavailableError, RepositoryBusyError
from domain.git.storage import get_repository_path
from domain.projects.views import ProjectView
from web.extensions import db
from web.http.public_urls import build_public_url
from web.services import get_git

#: Number of digits in an abbreviated hash.
_SHORT_HASH_LENGTH = 8
#: Semaphore that limits concurrent repository reads in each web process.
_READ_SLOTS = BoundedSemaphore(4)
_SLOT_TIMEOUT_SECONDS = 3.0
_RETRY_AFTER_SECONDS = 5


def build_clone_url(project: ProjectView) -> str:
    """Return the URL from which a project can be cloned."""
    page = url_for("projects.show_namespace", full_path=project.path)
    return build_public_url(f"{page}.git")


def read_commit(project: ProjectView, revision: str, *, with_stats: bool) -> RepositoryCommit:
    """Return the commit with the given hash, or the latest commit of a branch or tag.

    Raise NotFoundError if the commit was not pushed.
    """
    with _open_reader(project) as reader:
        commit = reader.find_commit(revision)
        lines = reader.count_changed_lines(commit) if with_stats else None
    return _build_commit(project, commit, lines)


@contextmanager
def _open_reader(project: ProjectView) -> Iterator[CommitReader]:
    """Open a project's repository, and release the database connection before reading.

    Raise GitUnavailableError if Git cannot be used, or RepositoryBusyError if no read slot becomes
    free.
    """
    own = get_git()
    if problem := own.find_problem():
        raise GitUnavailableError(f"Git on this server is {problem}.")
    path = get_repository_path(own.root, project.id, project.created_at)
    commit_to_release_locks(db.session())
    if not _READ_SLOTS.acquire(timeout=_SLOT_TIMEOUT_SECONDS):
        message = "The server is busy with other repositories. Try again in a moment."
        raise RepositoryBusyError(message, retry_after=_RETRY_AFTER_SECONDS)
    try:
        yield CommitReader(own, path)
    finally:
        _READ_SLOTS.release()


def _build_commit(
    project: ProjectView, commit: CommitDetails, lines: ChangedLines | None
) -> RepositoryCommit:
    return RepositoryCommit(
        id=commit.id,
        short_id=commit.id[:_SHORT_HASH_LENGTH],
        title=commit.title,
        message=commit.message,
        author_name=commit.author.name,
        author_email=commit.author.email,
        authored_date=commit.author.at,
        committer_name=commit.committer.name,
        committer_email=commit.committer.email,
        committed_date=commit.committer.at,
        created_at=commit.committer.at,
        parent_ids=list(commit.parents),
        web_url=build_public_url(url_for("projects.show_namespace", full_path=project.path)),
        project_id=project.id,
        status=find_combined_status(commit.id, project_id=project.id, session=db.session()),
        last_pipeline=None,
        stats=_build_stats(lines),
    )


def _build_stats(lines: ChangedLines | None) -> CommitStats | None:
    if lines is None:
        return None
    return CommitStats(
        additions=lines.additions,
        deletions=lines.deletions,
        total=lines.additions + lines.deletions,
    )
