"""On-call overview of a user across all projects, and actions to cover the user's shifts."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import func, or_, select

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.accounts.profiles import find_user_references
from domain.alerts.listing.filters import OPEN_STATUSES, SEVERITIES
from domain.alerts.listing.project_selection import (
    build_member_groups_query,
    build_member_projects_query,
    exclude_archived_projects,
)
from domain.alerts.listing.types import build_alert_url, build_incident_url
from domain.core.errors import InvalidError
from domain.paging.notifications.page_queue import PageKind
from domain.paging.notifications.page_subjects import INCIDENT_SEVERITY_RANK, SubjectKind
from domain.paging.on_call.absences.conflicts import find_conflicts
from domain.paging.on_call.eligible_users import find_eligible_user_id
from domain.paging.on_call.my_on_call_types import (
    CoverQuery,
    NewCover,
    OnCallCover,
    OnCallTurn,
    OwnOnCall,
    OwnOnCallQuery,
    OwnSchedule,
    PagedAlert,
)
from domain.paging.on_call.overrides_and_swaps import create_override
from domain.paging.on_call.rotation_turns import UserTurn, find_user_turns
from domain.paging.on_call.schedule_plans import Period
from domain.paging.on_call.schedule_queries import load_schedule_plans
from domain.paging.on_call.shifts import (
    UserSchedule,
    build_schedules_on_call,
    find_user_schedules,
    load_user_schedules,
)
from domain.paging.on_call.types import (
    NewOverride,
    OnCallPeriod,
    ScheduleOnCall,
    check_period,
    check_period_not_over,
)
from domain.projects.access import get_group, get_project
from domain.projects.row_ownership import build_web_url
from domain.projects.views import Namespace, ProjectOrGroup, get_viewer
from domain.projects.visibility_sql import select_groups_with_role
from models import Alert, Incident, Page, PageRecipient, Project
from models import OnCallSchedule as ScheduleRow

#: Period before now that is searched for the start of a current turn, and period after the shown
#: weeks that is searched for the end of a turn.
MAX_TURN_LOOKBACK = timedelta(days=56)
_MAX_ALERTS = 50
MAX_VISIBLE_SCHEDULES = 200


@read_action("own_on_call.show")
def show_own_on_call(work: UnitOfWork, query: OwnOnCallQuery) -> OwnOnCall:
    """Show your shifts and the open alerts and incidents that you were paged about."""
    # Use whole days, so that the start of earlier turns does not vary within a day.
    today = work.now.replace(hour=0, minute=0, second=0, microsecond=0)
    shown = Period(work.now, work.now + timedelta(weeks=query.weeks))
    # Turns that start within the period are shown up to their end.
    within = Period(today - MAX_TURN_LOOKBACK, shown.end + MAX_TURN_LOOKBACK)
    schedules = _build_own_schedules(work, _find_member_schedules(work), within, shown)
    alerts, incidents = (
        _find_paged_alerts(work, SubjectKind.ALERT),
        _find_paged_alerts(work, SubjectKind.INCIDENT),
    )
    ids = [each.schedule_id for each in schedules]
    conflicts = find_conflicts(work, ids, user_ids=[work.actor.id or 0])
    return OwnOnCall(schedules=schedules, conflicts=conflicts, alerts=alerts, incidents=incidents)


@read_action("own_on_call.show")
def list_visible_schedules(work: UnitOfWork) -> Sequence[tuple[Namespace, ScheduleOnCall]]:
    """Return the schedules that you can see as a member, with owners and users on call."""
    viewer, session = get_viewer(work), work.session
    projects = exclude_archived_projects(build_member_projects_query(viewer, session=session))
    groups = build_member_groups_query(viewer, session=session)
    ids = session.scalars(
        select(ScheduleRow.id)
        .where(or_(ScheduleRow.project_id.in_(projects), ScheduleRow.group_id.in_(groups)))
        .order_by(ScheduleRow.name_key, ScheduleRow.id)
        .limit(MAX_VISIBLE_SCHEDULES)
    ).all()
    found = sorted(load_user_schedules(ids, session=session), key=lambda each: each.place.path)
    places = {each.id: each.place for each in found}
    shown = build_schedules_on_call(work, found)
    return tuple((places[each.schedule_id], each) for each in shown)


@read_action("own_on_call.preview_cover", command="preview-cover")
def preview_cover(work: UnitOfWork, query: CoverQuery) -> OnCallCover:
    """Preview the shifts that another user would cover.

    Raise InvalidError if there are no shifts, or if the other user cannot be on call in a schedule.
    """
    return _build_cover(work, query)


@action("own_on_call.cover")
def cover_shifts(work: UnitOfWork, new: NewCover) -> OnCallCover:
    """Assign another user to cover your shifts in one or more schedules.

    An override that replaces only you is created in each schedule; other users stay on call. Raise
    InvalidError if there are no shifts, or if the other user cannot be on call in a schedule.
    """
    found = _build_cover(work, new)
    for each in found.schedules:
        override = NewOverride(
            user=new.user,
            instead_of=each.turns[0].user.username,
            starts_at=found.starts_at,
            ends_at=found.ends_at,
        )
        create_override(work, get_schedule_owner(work, each), each.schedule_id, override)
    return found


def _build_cover(work: UnitOfWork, wanted: NewCover | CoverQuery) -> OnCallCover:
    during = check_period(wanted.starts_at, wanted.ends_at, fields=("starts_at", "ends_at"))
    check_period_not_over(during, field="ends_at", now=work.now)
    left = Period(max(during.start, work.now), during.end)
    named = [
        each
        for each in _find_member_schedules(work)
        if not wanted.schedules or each.id in wanted.schedules
    ]
    found = [each for each in _build_own_schedules(work, named, left, left) if each.turns]
    if not found:
        message = "You have no shifts in this period. Choose another period."
        raise InvalidError(message, field="starts_at")
    for each in found if wanted.user else ():
        try:
            user_id = find_eligible_user_id(
                work, get_schedule_owner(work, each), wanted.user, field="user"
            )
        except InvalidError as error:
            message = f"{each.name} of {each.path}: {error}"
            raise InvalidError(message, field="user") from error
        if user_id == work.actor.id:
            message = "Users cannot cover their own shifts. Choose another user."
            raise InvalidError(message, field="user")
    return OnCallCover(starts_at=during.start, ends_at=during.end, schedules=tuple(found))


def get_schedule_owner(work: UnitOfWork, schedule: OwnSchedule) -> ProjectOrGroup:
    """Return the project or group that owns a schedule."""
    get = get_group if schedule.group else get_project
    return get(schedule.path, get_viewer(work), session=work.session)


def _find_member_schedules(work: UnitOfWork) -> Sequence[UserSchedule]:
    """Return the schedules that include the actor, in the actor's projects and groups."""
    session, viewer = work.session, get_viewer(work)
    found = find_user_schedules(work.actor.id or 0, session=session, now=work.now)
    projects = set(session.scalars(build_member_projects_query(viewer, session=session)))
    groups = set(session.scalars(select_groups_with_role(viewer)))
    return [
        each for each in found if each.place.id in (groups if each.place.is_group else projects)
    ]


def _build_own_schedules(
    work: UnitOfWork,
    user_schedules: Sequence[UserSchedule],
    enclosing_period: Period,
    shown_period: Period,
) -> tuple[OwnSchedule, ...]:
    """Return schedules with the actor's turns in `shown_period`.

    The turns are truncated to `enclosing_period`.
    """
    ids = [each.id for each in user_schedules]
    plans = load_schedule_plans(ids, enclosing_period, session=work.session, now=work.now)
    now = {each.schedule_id: each for each in build_schedules_on_call(work, user_schedules)}
    return tuple(
        OwnSchedule(
            **dict(now[each.id]),
            project_path=None if each.place.is_group else each.place.path,
            web_url=(
                f"{build_web_url(each.place, work.settings.base_url)}/on_call/schedules/{each.id}"
            ),
            turns=tuple(
                _build_turns(
                    work,
                    [
                        turn
                        for turn in find_user_turns(plans[each.id], enclosing_period)
                        if turn.duty.user_id == work.actor.id
                        and turn.period.end > shown_period.start
                        and turn.period.start < shown_period.end
                    ],
                    enclosing_period,
                )
            ),
        )
        for each in user_schedules
        if each.id in plans and each.id in now
    )


def list_schedule_turns(
    work: UnitOfWork, schedule_id: int, period: Period
) -> tuple[OnCallTurn, ...]:
    """Return the turns of all users in a schedule."""
    plans = load_schedule_plans([schedule_id], period, session=work.session, now=work.now)
    return tuple(
        _build_turns(
            work,
            find_user_turns(plans[schedule_id], period) if schedule_id in plans else (),
            period,
        )
    )


def _build_turns(
    work: UnitOfWork, turns: Sequence[UserTurn], period: Period
) -> Iterable[OnCallTurn]:
    ids = {each.duty.user_id for each in turns}
    named = find_user_references(ids, base_url=work.settings.base_url, session=work.session)
    for each in turns:
        yield OnCallTurn(
            user=named[each.duty.user_id],
            starts_at=each.period.start,
            ends_at=each.period.end,
            source=each.duty.source.value,
            may_continue=each.period.end >= period.end,
            shifts=tuple(
                OnCallPeriod(starts_at=part.start, ends_at=part.end) for part in each.parts
            ),
        )


def _find_paged_alerts(work: UnitOfWork, subject_kind: SubjectKind) -> tuple[PagedAlert, ...]:
    """Return open alerts or incidents that the actor was paged about, latest page first."""
    thing: Any = Incident if subject_kind is SubjectKind.INCIDENT else Alert
    severity = INCIDENT_SEVERITY_RANK if subject_kind is SubjectKind.INCIDENT else Alert.severity
    url = build_incident_url if subject_kind is SubjectKind.INCIDENT else build_alert_url
    paged_at = func.max(Page.due_at)
    rows = work.session.execute(
        select(Project.path, thing.iid, thing.title, thing.status)
        .add_columns(severity.label("severity"), paged_at.label("paged_at"))
        .select_from(Page)
        .join(PageRecipient, PageRecipient.id == Page.recipient_id)
        .join(thing, thing.id == subject_kind.column)
        .join(Project, Project.id == thing.project_id)
        .where(
            PageRecipient.user_id == work.actor.id,
            Page.kind == PageKind.FIRING.value,
            Page.due_at <= work.now,
            thing.status.in_(OPEN_STATUSES),
            thing.project_id.in_(
                build_member_projects_query(get_viewer(work), session=work.session)
            ),
        )
        .group_by(Project.path, thing.id)
        .order_by(paged_at.desc(), thing.id.desc())
        .limit(_MAX_ALERTS)
    )
    return tuple(
        PagedAlert(
            project_path=row.path,
            iid=row.iid,
            title=row.title,
            severity=SEVERITIES[row.severity].value,
            status=row.status,
            paged_at=row.paged_at,
            web_url=url(row.path, row.iid, work.settings.base_url),
        )
        for row in rows
    )
