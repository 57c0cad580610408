"""Commit details for the API."""

from flask import url_for

from blueprints.git.browsing import open_reader
from domain.ci_cd.combined_status import combined_status
from domain.ci_cd.types import CommitStats, RepositoryCommit
from domain.git.browsing import ChangedLines, CommitDetails
from domain.projects.views import ProjectView
from web.extensions import db
from web.http.public_urls import public_url

#: Number of digits in a short commit id.
_SHORT = 8


def read_commit(project: ProjectView, revision: str, *, with_stats: bool) -> RepositoryCommit:
    """Return the commit that a hash, branch or tag refers to.

    Raise NotFoundError if the commit was not pushed.
    """
    with open_reader(project) as reader:
        commit = reader.find_commit(revision)
        lines = reader.changed_lines(commit) if with_stats else None
    return _shown(project, commit, lines)


def _shown(
    project: ProjectView, commit: CommitDetails, lines: ChangedLines | None
) -> RepositoryCommit:
    page = url_for("files.commits", project_path=project.path, tail=commit.id)
    return RepositoryCommit(
        id=commit.id,
        short_id=commit.id[:_SHORT],
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
        web_url=public_url(page),
        project_id=project.id,
        status=combined_status(commit.id, project_id=project.id, session=db.session()),
        last_pipeline=None,
        stats=_stats(lines),
    )


def _stats(lines: ChangedLines | None) -> CommitStats | None:
    if lines is None:
        return None
    return CommitStats(
        additions=lines.additions,
        deletions=lines.deletions,
        total=lines.additions + lines.deletions,
    )
