"""Combines the statuses that external CI reported for a commit, as GitLab does."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.ci_cd.types import CommitState
from models import CommitStatus

_UNSUCCESSFUL_STATES = frozenset({"failed", "canceled"})
#: Sets of job states, each with the resulting state. The first set that contains the states of all
#: jobs is used.
_STATE_PRECEDENCE: tuple[tuple[frozenset[str], CommitState], ...] = (
    (frozenset({"skipped"}), "skipped"),
    (frozenset({"success", "skipped"}), "success"),
    (frozenset({"canceled", "success", "skipped"}), "canceled"),
    (frozenset({"pending", "skipped"}), "pending"),
)


def find_combined_status(sha: str, *, project_id: int, session: Session) -> CommitState | None:
    """Return the combined state of a commit, or None if no job reported a status."""
    rows = session.execute(
        select(CommitStatus.status, CommitStatus.allow_failure)
        .where(CommitStatus.project_id == project_id, CommitStatus.sha == sha)
        .distinct()
    )
    return combine_job_states((status, may_fail) for status, may_fail in rows)


def combine_job_states(jobs: Iterable[tuple[str, bool]]) -> CommitState | None:
    """Return the combined state of jobs, or None if there are no jobs.

    Each job is a pair: its state, and whether the job may fail.
    """
    states = {
        "success" if may_fail and state in _UNSUCCESSFUL_STATES else state
        for state, may_fail in jobs
    }
    if not states:
        return None
    for known, combined in _STATE_PRECEDENCE:
        if states <= known:
            return combined
    return "running" if states & {"running", "pending"} else "failed"
