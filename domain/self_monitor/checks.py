"""The results of the self-monitor's checks."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from models import SelfMonitorCheck

#: In `job_turns`: of several workers one checks.
TURN = "self_monitor"
_KEPT = 1_000
#: After so many periods without a check something is wrong with the worker.
_MISSED = 3


@dataclass(frozen=True, kw_only=True)
class Check:
    """What came of one synthetic alert; the times are None for steps that did not happen."""

    started_at: datetime
    stored: timedelta | None = None
    paged: timedelta | None = None
    resolved: timedelta | None = None
    #: What went wrong, as a sentence; None for nothing.
    problem: str | None = None
    #: Why the dead man's switch did not take its ping.
    switch_problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class MonitorState:
    """The last check, and whether the way of an alert works."""

    #: None before the first one.
    last: Check | None
    last_success_at: datetime | None
    is_late: bool

    @property
    def is_well(self) -> bool:
        """Whether there is nothing to tell administrators."""
        if self.is_late:
            return False
        return self.last is None or (self.last.problem is None and not self.last.switch_problem)


def record_check(check: Check, *, session: Session) -> None:
    """Store a check, and forget old ones."""
    row = SelfMonitorCheck(
        started_at=check.started_at,
        stored_ms=_ms(check.stored),
        paged_ms=_ms(check.paged),
        resolved_ms=_ms(check.resolved),
        problem=check.problem,
        switch_problem=check.switch_problem,
    )
    session.add(row)
    session.flush()  # to get the id
    old = delete(SelfMonitorCheck).where(SelfMonitorCheck.id <= row.id - _KEPT)
    session.execute(old.execution_options(synchronize_session=False))


def monitor_state(*, period: timedelta, session: Session, now: datetime) -> MonitorState:
    """Return the last check, and whether the next one is missing for long."""
    newest = select(SelfMonitorCheck).order_by(SelfMonitorCheck.id.desc()).limit(1)
    last = session.scalars(newest).first()
    good = session.scalars(newest.where(SelfMonitorCheck.problem.is_(None))).first()
    return MonitorState(
        last=_view(last) if last else None,
        last_success_at=good.started_at if good else None,
        is_late=last is not None and now - last.started_at > _MISSED * period,
    )


def _view(row: SelfMonitorCheck) -> Check:
    return Check(
        started_at=row.started_at,
        stored=_length(row.stored_ms),
        paged=_length(row.paged_ms),
        resolved=_length(row.resolved_ms),
        problem=row.problem,
        switch_problem=row.switch_problem,
    )


def _ms(length: timedelta | None) -> int | None:
    return None if length is None else max(length // timedelta(milliseconds=1), 0)


def _length(number: int | None) -> timedelta | None:
    return None if number is None else timedelta(milliseconds=number)
