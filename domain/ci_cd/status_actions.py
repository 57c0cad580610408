"""Actions on commit statuses, which external CI reports for each job."""

from collections.abc import Sequence

from sqlalchemy import select

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.accounts.profiles import user_references
from domain.ci_cd.types import CommitStatus, CommitStatusQuery, NewCommitStatus
from domain.core.database.paging import fetch_part
from domain.core.errors import InvalidError
from domain.core.types.base import Found, columns_of
from domain.projects.views import ProjectView
from models import CommitStatus as StatusRow
from models import Project

_FINISHED = frozenset({"success", "failed", "canceled", "skipped"})
_ORDERS = {"id": StatusRow.id, "pipeline_id": StatusRow.pipeline_id}
_FILTERS = ("ref", "stage", "name", "pipeline_id")
_KEPT = ("stage", "target_url", "description", "coverage", "allow_failure", "pipeline_id")


@question("commit_statuses.index")
def list_statuses(
    work: Work, project: ProjectView, sha: str, query: CommitStatusQuery
) -> Found[CommitStatus]:
    """List the statuses of a commit."""
    given = {name: value for name in _FILTERS if (value := getattr(query, name))}
    of_commit = select(StatusRow).filter_by(project_id=project.id, sha=sha, **given)
    found = fetch_part(of_commit, _ORDERS, query.part, session=work.session)
    items = _shown(work, [row[0] for row in found.items])
    return Found(items=items, total=found.total, next_cursor=found.next_cursor)


@action("commit_statuses.create")
def report_status(work: Work, project: ProjectView, sha: str, new: NewCommitStatus) -> CommitStatus:
    """Report the status of a commit, or update the status that this job reported before."""
    # Two concurrent reports of a job must update the same status. SQLite has only one writer. The
    # lock does not block inserts of alerts, which refer to the project.
    one_at_a_time = select(Project.id).where(Project.id == project.id)
    work.session.execute(one_at_a_time.with_for_update(key_share=True))
    key = {"project_id": project.id, "sha": sha, "ref": new.ref, "name": new.job}
    row = work.session.scalar(select(StatusRow).filter_by(**key))
    if row is None:
        row = StatusRow(**key, stage="external", allow_failure=False, created_at=work.now)
        work.session.add(row)
    elif row.status == new.state and new.state in _FINISHED:
        message = f"The status is already {new.state}. Report another status before this one."
        raise InvalidError(message, field="state")
    _fill(work, row, new)
    work.session.flush()
    return _shown(work, [row])[0]


def _fill(work: Work, row: StatusRow, new: NewCommitStatus) -> None:
    for name in _KEPT:
        if (value := getattr(new, name)) is not None:
            setattr(row, name, value)
    row.status, row.user_id = new.state, work.actor.id
    if new.state == "pending":  # The job restarts.
        row.started_at = None
    elif row.started_at is None:
        row.started_at = work.now
    row.finished_at = work.now if new.state in _FINISHED else None


def _shown(work: Work, rows: Sequence[StatusRow]) -> Sequence[CommitStatus]:
    ids = (row.user_id for row in rows if row.user_id)
    named = user_references(ids, base_url=work.settings.base_url, session=work.session)
    return [
        CommitStatus(
            **{
                **columns_of(row, CommitStatus),
                "ref": row.ref or None,
                "author": named.get(row.user_id or 0),
            }
        )
        for row in rows
    ]
