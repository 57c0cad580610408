"""Statuses of commits, reported by external CI: one for each job, which later reports change."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from domain.ci_cd.people import Reporter, reporters
from domain.database.paging import Listed, ListPart, fetch_part
from domain.errors import InvalidError, InvalidParametersError, InvalidValue
from models import CommitStatus, Project

#: In the order of a job's life.
STATUSES = ("pending", "running", "success", "failed", "canceled", "skipped")
_FINISHED = frozenset({"success", "failed", "canceled", "skipped"})
#: Characters of a text of a report; the release schedule has a lower limit from release 16.0 on.
_LONGEST_TEXT = 65_536
_ORDERS = {"id": CommitStatus.id, "pipeline_id": CommitStatus.pipeline_id}


@dataclass(frozen=True, kw_only=True)
class StatusReport:
    """What CI says of a commit; what is None stays as it was reported before."""

    sha: str
    status: str
    name: str
    user_id: int
    ref: str = ""
    stage: str | None = None
    target_url: str | None = None
    description: str | None = None
    coverage: float | None = None
    allow_failure: bool | None = None
    pipeline_id: int | None = None

    def check(self) -> None:
        """Raise InvalidParametersError for texts that no release takes."""
        texts = {
            "ref": self.ref,
            "stage": self.stage,
            "target_url": self.target_url,
            "description": self.description,
        }
        reason = f"can have at most {_LONGEST_TEXT} characters"
        problems = [
            InvalidValue(field=name, reason=reason)
            for name, text in texts.items()
            if text is not None and len(text) > _LONGEST_TEXT
        ]
        if problems:
            raise InvalidParametersError(problems)


@dataclass(frozen=True, kw_only=True)
class StatusFilter:
    """Which statuses of a commit a list has."""

    project_id: int
    sha: str
    ref: str | None = None
    stage: str | None = None
    name: str | None = None
    pipeline_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class CommitStatusView:
    """A status of a commit."""

    id: int
    sha: str
    ref: str
    name: str
    stage: str
    status: str
    target_url: str | None
    description: str | None
    coverage: float | None
    allow_failure: bool
    pipeline_id: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    reporter: Reporter | None


def report_status(
    project_id: int, report: StatusReport, *, session: Session, now: datetime
) -> CommitStatusView:
    """Store a status, or change the one that the same job reported before."""
    # Two reports of one job at once become one status; SQLite lets one write at a time anyway.
    # Alerts, which refer to the project, go on.
    one_at_a_time = select(Project.id).where(Project.id == project_id)
    session.execute(one_at_a_time.with_for_update(key_share=True))
    row = session.scalar(
        select(CommitStatus).where(
            CommitStatus.project_id == project_id,
            CommitStatus.sha == report.sha,
            CommitStatus.ref == report.ref,
            CommitStatus.name == report.name,
        )
    )
    if row is None:
        row = CommitStatus(
            project_id=project_id,
            sha=report.sha,
            ref=report.ref,
            name=report.name,
            stage="external",
            allow_failure=False,
            created_at=now,
        )
        session.add(row)
    elif row.status == report.status and report.status in _FINISHED:
        message = f"This status is already {report.status}."
        raise InvalidError(message, field="state")
    _change(row, report, now)
    session.flush()
    people = reporters([row.user_id], session=session)
    return _view(row, people.get(row.user_id))


def _change(row: CommitStatus, report: StatusReport, now: datetime) -> None:
    given = {
        "stage": report.stage,
        "target_url": report.target_url,
        "description": report.description,
        "coverage": report.coverage,
        "allow_failure": report.allow_failure,
        "pipeline_id": report.pipeline_id,
    }
    for name, value in given.items():
        if value is not None:
            setattr(row, name, value)
    row.status, row.user_id = report.status, report.user_id
    if report.status == "pending":  # it begins anew
        row.started_at = None
    elif row.started_at is None:
        row.started_at = now
    row.finished_at = now if report.status in _FINISHED else None


def list_statuses(
    wanted: StatusFilter, part: ListPart, *, session: Session
) -> Listed[CommitStatusView]:
    """Return a part of the statuses of a commit."""
    statement = select(CommitStatus).where(*_conditions(wanted))
    found = fetch_part(statement, _ORDERS, part, session=session)
    people = reporters((row[0].user_id for row in found.items), session=session)
    items = tuple(_view(row[0], people.get(row[0].user_id)) for row in found.items)
    return Listed(items=items, total=found.total, next_cursor=found.next_cursor)


def _conditions(wanted: StatusFilter) -> list[ColumnElement[bool]]:
    found = [CommitStatus.project_id == wanted.project_id, CommitStatus.sha == wanted.sha]
    if wanted.ref:
        found.append(CommitStatus.ref == wanted.ref)
    if wanted.stage:
        found.append(CommitStatus.stage == wanted.stage)
    if wanted.name:
        found.append(CommitStatus.name == wanted.name)
    if wanted.pipeline_id is not None:
        found.append(CommitStatus.pipeline_id == wanted.pipeline_id)
    return found


def _view(row: CommitStatus, reporter: Reporter | None) -> CommitStatusView:
    return CommitStatusView(
        id=row.id,
        sha=row.sha,
        ref=row.ref,
        name=row.name,
        stage=row.stage,
        status=row.status,
        target_url=row.target_url,
        description=row.description,
        coverage=row.coverage,
        allow_failure=row.allow_failure,
        pipeline_id=row.pipeline_id,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        reporter=reporter,
    )
