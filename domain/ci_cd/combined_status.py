"""Combines the statuses that external CI reported for a commit into one, as GitLab does."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.ci_cd.types import CommitState
from models import CommitStatus

_ENDED_BADLY = frozenset({"failed", "canceled"})
#: The first row that has all states of the jobs gives the state of the commit.
_STATES: tuple[tuple[frozenset[str], CommitState], ...] = (
    (frozenset({"skipped"}), "skipped"),
    (frozenset({"success", "skipped"}), "success"),
    (frozenset({"canceled", "success", "skipped"}), "canceled"),
    (frozenset({"pending", "skipped"}), "pending"),
)


def combined_status(sha: str, *, project_id: int, session: Session) -> CommitState | None:
    """Return the state of a commit, or None if no job reported a status."""
    rows = session.execute(
        select(CommitStatus.status, CommitStatus.allow_failure)
        .where(CommitStatus.project_id == project_id, CommitStatus.sha == sha)
        .distinct()
    )
    return combine((status, may_fail) for status, may_fail in rows)


def combine(jobs: Iterable[tuple[str, bool]]) -> CommitState | None:
    """Return one state for the states of jobs, each with whether the job may fail."""
    states = {
        "success" if may_fail and state in _ENDED_BADLY else state for state, may_fail in jobs
    }
    if not states:
        return None
    for known, combined in _STATES:
        if states <= known:
            return combined
    return "running" if states & {"running", "pending"} else "failed"
