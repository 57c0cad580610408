"""Results of backups, and failures of the worker's jobs, as stored in `job_turns`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_session_insert
from models import JobTurn

#: Maximum time between backups: one day, plus time for a slow backup.
MAX_BACKUP_AGE = timedelta(hours=36)
#: Time for which the failure of a job is shown.
FAILURE_DISPLAY_TIME = timedelta(hours=1)
_BACKUP_NAME, _FAILED_BACKUP_NAME = "backup", "backup failed"
_FAILED_JOB_PREFIX = "failed: "
_MAX_DETAIL_LENGTH = 255


@dataclass(frozen=True, kw_only=True)
class BackupState:
    """The results of the last successful backup and of the last failed backup."""

    succeeded_at: datetime | None = None
    #: Size of the last successful backup in bytes.
    bytes: int | None = None
    failed_at: datetime | None = None
    #: Reason for the last failure.
    reason: str | None = None

    @property
    def has_failed(self) -> bool:
        """True if the last backup failed."""
        return self.failed_at is not None and (
            self.succeeded_at is None or self.failed_at > self.succeeded_at
        )

    def is_overdue(self, now: datetime) -> bool:
        """Return whether the last successful backup is too old or missing."""
        return self.succeeded_at is None or now - self.succeeded_at > MAX_BACKUP_AGE


@dataclass(frozen=True, kw_only=True)
class FailedJob:
    """The last failure of one of the worker's jobs."""

    name: str
    failed_at: datetime
    reason: str


def record_backup(size: int, *, session: Session, now: datetime) -> None:
    """Record a successful backup with its size in bytes."""
    _store_result(_BACKUP_NAME, str(size), session, now)


def record_failed_backup(reason: str, *, session: Session, now: datetime) -> None:
    """Record a failed backup with the reason for the failure."""
    _store_result(_FAILED_BACKUP_NAME, reason, session, now)


def record_failed_job(name: str, reason: str, *, session: Session, now: datetime) -> None:
    """Record the latest failure of one of the worker's jobs, with the reason."""
    _store_result(f"{_FAILED_JOB_PREFIX}{name}", reason, session, now)


def get_backup_state(*, session: Session) -> BackupState:
    """Return the results of the last successful backup and of the last failed backup."""
    rows = session.scalars(
        select(JobTurn).where(JobTurn.name.in_((_BACKUP_NAME, _FAILED_BACKUP_NAME)))
    )
    found = {row.name: row for row in rows}
    good, bad = found.get(_BACKUP_NAME), found.get(_FAILED_BACKUP_NAME)
    return BackupState(
        succeeded_at=good.taken_at if good else None,
        bytes=int(good.detail or 0) if good else None,
        failed_at=bad.taken_at if bad else None,
        reason=bad.detail if bad else None,
    )


def list_failed_jobs(*, session: Session) -> Sequence[FailedJob]:
    """Return the last failure of each job that has ever failed, ordered by job name."""
    rows = session.scalars(
        select(JobTurn).where(JobTurn.name.startswith(_FAILED_JOB_PREFIX)).order_by(JobTurn.name)
    )
    return [
        FailedJob(
            name=row.name.removeprefix(_FAILED_JOB_PREFIX),
            failed_at=row.taken_at,
            reason=row.detail or "",
        )
        for row in rows
    ]


def _store_result(name: str, detail: str, session: Session, now: datetime) -> None:
    values = {"taken_at": now, "detail": detail[:_MAX_DETAIL_LENGTH]}
    session.execute(
        build_session_insert(JobTurn, session=session)
        .values(name=name, **values)
        .on_conflict_do_update(index_elements=[JobTurn.name], set_=values)
    )
