"""Actions on commit statuses, which external CI reports for each job."""

from collections.abc import Sequence

from sqlalchemy import select

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.accounts.profiles import find_user_references
from domain.ci_cd.types import CommitStatus, CommitStatusQuery, NewCommitStatus
from domain.core.database.pagination import fetch_list_page
from domain.core.errors import InvalidError
from domain.core.types.base import get_column_values
from domain.core.types.pagination import ListPage
from domain.projects.views import ProjectView
from models import CommitStatus as StatusRow
from models import Project

_FINAL_STATES = frozenset({"success", "failed", "canceled", "skipped"})
_SORT_COLUMNS = {"id": StatusRow.id, "pipeline_id": StatusRow.pipeline_id}
_FILTER_FIELDS = ("ref", "stage", "name", "pipeline_id")
_REPORTED_FIELDS = (
    "stage",
    "target_url",
    "description",
    "coverage",
    "allow_failure",
    "pipeline_id",
)


@read_action("commit_statuses.index")
def list_statuses(
    work: UnitOfWork, project: ProjectView, sha: str, query: CommitStatusQuery
) -> ListPage[CommitStatus]:
    """List the statuses of a commit."""
    given = {name: value for name in _FILTER_FIELDS if (value := getattr(query, name))}
    of_commit = select(StatusRow).filter_by(project_id=project.id, sha=sha, **given)
    found = fetch_list_page(of_commit, _SORT_COLUMNS, query.requested_range, session=work.session)
    items = _build_statuses(work, [row[0] for row in found.items])
    return ListPage(items=items, total=found.total, next_cursor=found.next_cursor)


@action("commit_statuses.create")
def report_status(
    work: UnitOfWork, project: ProjectView, sha: str, new: NewCommitStatus
) -> CommitStatus:
    """Report the status of a commit, or update the status that the same job reported earlier."""
    # Two concurrent reports from a job must update the same status, so the project is locked.
    # SQLite needs no lock, because it has only one writer. The lock does not block inserts of
    # alerts, which reference the project.
    one_at_a_time = select(Project.id).where(Project.id == project.id)
    work.session.execute(one_at_a_time.with_for_update(key_share=True))
    key = {"project_id": project.id, "sha": sha, "ref": new.ref, "name": new.job}
    row = work.session.scalar(select(StatusRow).filter_by(**key))
    if row is None:
        row = StatusRow(**key, stage="external", allow_failure=False, created_at=work.now)
        work.session.add(row)
    elif row.status == new.state and new.state in _FINAL_STATES:
        message = (
            f"The status is already {new.state}. Report a different status before you report "
            f"{new.state} again."
        )
        raise InvalidError(message, field="state")
    _update_status_row(work, row, new)
    work.session.flush()
    return _build_statuses(work, [row])[0]


def _update_status_row(
    work: UnitOfWork, row: StatusRow, new_commit_status: NewCommitStatus
) -> None:
    for name in _REPORTED_FIELDS:
        if (value := getattr(new_commit_status, name)) is not None:
            setattr(row, name, value)
    row.status, row.user_id = new_commit_status.state, work.actor.id
    if new_commit_status.state == "pending":  # The job restarts.
        row.started_at = None
    elif row.started_at is None:
        row.started_at = work.now
    row.finished_at = work.now if new_commit_status.state in _FINAL_STATES else None


def _build_statuses(work: UnitOfWork, rows: Sequence[StatusRow]) -> Sequence[CommitStatus]:
    ids = (row.user_id for row in rows if row.user_id)
    named = find_user_references(ids, base_url=work.settings.base_url, session=work.session)
    return [
        CommitStatus(
            **{
                **get_column_values(row, CommitStatus),
                "ref": row.ref or None,
                "author": named.get(row.user_id or 0),
            }
        )
        for row in rows
    ]
