"""Who is on call, with names, as all faces show it."""

from collections.abc import Iterable, Mapping, Sequence

from domain.access.actor import Work
from domain.accounts.references import UserReference, user_references
from domain.on_call.current import on_call_and_next
from domain.on_call.final_schedule import Span, spans
from domain.on_call.reading import read_plans
from domain.on_call.restrictions import Period
from domain.on_call.schedules import all_schedules
from domain.on_call.types import OnCallNow, OnCallSchedule, OnCallShift, OnCallUser, ScheduleOnCall
from domain.projects.views import ProjectView


def schedules_now(work: Work, schedules: Sequence[OnCallSchedule]) -> Sequence[ScheduleOnCall]:
    """Return who is on call now and next in some schedules, in their order."""
    found = on_call_and_next([each.id for each in schedules], at=work.now, session=work.session)
    both = (span for each in found.values() for span in (each.now, each.next) if span)
    named = _people(work, both)
    return tuple(
        ScheduleOnCall(
            schedule_id=schedule.id,
            name=schedule.name,
            time_zone=schedule.time_zone,
            now=OnCallNow(
                users=_users(each.now, named),
                on_call=_duties(each.now, named),
                until=each.now.end if each.changes else None,
            ),
            next=_shift(each.next, named) if each.next else None,
        )
        for schedule in schedules
        if (each := found.get(schedule.id))
    )


def on_call_in_project(work: Work, project: ProjectView) -> Sequence[ScheduleOnCall]:
    """Return who is on call now and next in each schedule of a project, by name."""
    return schedules_now(work, all_schedules(work, project))


def shifts_of(work: Work, schedule_id: int, within: Period) -> Sequence[OnCallShift]:
    """Return who is on call from one moment to another, gaps included."""
    plans = read_plans([schedule_id], within, session=work.session, today=work.now.date())
    if schedule_id not in plans:
        return ()
    found = spans(plans[schedule_id], within.start, within.end)
    named = _people(work, found)
    return tuple(_shift(each, named) for each in found)


def _people(work: Work, found: Iterable[Span]) -> Mapping[int, UserReference]:
    ids = (user_id for each in found for user_id in each.user_ids)
    return user_references(ids, base_url=work.settings.base_url, session=work.session)


def _shift(span: Span, named: Mapping[int, UserReference]) -> OnCallShift:
    return OnCallShift(
        starts_at=span.start,
        ends_at=span.end,
        is_gap=not span.duties,
        users=_users(span, named),
        on_call=_duties(span, named),
    )


def _users(span: Span, named: Mapping[int, UserReference]) -> tuple[UserReference, ...]:
    return tuple(named[each] for each in span.user_ids)


def _duties(span: Span, named: Mapping[int, UserReference]) -> tuple[OnCallUser, ...]:
    return tuple(
        OnCallUser(user=named[each.user_id], source=each.source.value, source_id=each.source_id)
        for each in span.duties
    )
