"""Who is on call, with names, as pages and the API show it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from domain.on_call.current import on_call_and_next
from domain.on_call.final_schedule import Source, Span, spans
from domain.on_call.people import PersonOnCall, people
from domain.on_call.reading import read_plans
from domain.on_call.restrictions import Period
from domain.on_call.schedules import ScheduleView, all_schedules


@dataclass(frozen=True, kw_only=True)
class ShownDuty:
    """A user on call, and why."""

    person: PersonOnCall
    source: Source
    #: Of the rotation, override or swap.
    source_id: int


@dataclass(frozen=True, kw_only=True)
class Shift:
    """A time in which the same users are on call; a gap without any."""

    start: datetime
    end: datetime
    duties: tuple[ShownDuty, ...]

    @property
    def people(self) -> tuple[PersonOnCall, ...]:
        """Return the users on call."""
        return tuple(each.person for each in self.duties)

    @property
    def is_gap(self) -> bool:
        """Return whether nobody is on call."""
        return not self.duties


@dataclass(frozen=True, kw_only=True)
class ScheduleNow:
    """A schedule with who is on call now and next."""

    schedule: ScheduleView
    now: Shift
    #: The next time after it in which somebody is on call; None if there is none within 400 days.
    next: Shift | None
    #: Until when `now` lasts; None if it does not change within 400 days.
    until: datetime | None


def schedules_now(
    schedules: Sequence[ScheduleView], *, session: Session, now: datetime
) -> tuple[ScheduleNow, ...]:
    """Return who is on call now and next in some schedules, in their order."""
    found = on_call_and_next([each.id for each in schedules], at=now, session=session)
    shown = [(each, found[each.id]) for each in schedules if each.id in found]
    named = _people(
        (span for _, each in shown for span in (each.now, each.next) if span), session=session
    )
    return tuple(
        ScheduleNow(
            schedule=schedule,
            now=_shift(each.now, named),
            next=_shift(each.next, named) if each.next else None,
            until=each.now.end if each.changes else None,
        )
        for schedule, each in shown
    )


def on_call_in_project(
    project_id: int, *, session: Session, now: datetime
) -> tuple[ScheduleNow, ...]:
    """Return who is on call now and next in each schedule of a project, by name."""
    return schedules_now(all_schedules(project_id, session=session), session=session, now=now)


def shifts_of(
    schedule_id: int, within: Period, *, session: Session, now: datetime
) -> tuple[Shift, ...]:
    """Return who is on call from one moment to another, gaps included."""
    plans = read_plans([schedule_id], within, session=session, today=now.date())
    if schedule_id not in plans:
        return ()
    found = spans(plans[schedule_id], within.start, within.end)
    named = _people(found, session=session)
    return tuple(_shift(each, named) for each in found)


def _people(found: Iterable[Span], *, session: Session) -> Mapping[int, PersonOnCall]:
    return people((user_id for each in found for user_id in each.user_ids), session=session)


def _shift(span: Span, named: Mapping[int, PersonOnCall]) -> Shift:
    duties = (
        ShownDuty(person=named[each.user_id], source=each.source, source_id=each.source_id)
        for each in span.duties
    )
    return Shift(start=span.start, end=span.end, duties=tuple(duties))
