"""Drafts of handoff notes, with open alerts and the events of the shift."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby, islice

from domain.access.actor import UnitOfWork
from domain.alerts.listing.filters import OPEN_STATUSES, AlertFilter
from domain.alerts.listing.queries import AlertListRow, list_alerts
from domain.alerts.listing.sort_orders import SORT_ORDERS, AlertSlice
from domain.core.time_zones import format_local_time
from domain.incidents.listing import NEWEST_FIRST, IncidentFilter, IncidentSlice, list_incidents
from domain.paging.on_call.schedule_plans import Period
from domain.paging.on_call.shifts import list_schedule_shifts
from domain.paging.on_call.types import OnCallSchedule
from domain.projects.views import ProjectOrGroup, ProjectView
from domain.reports.report_builder import build_on_call_report, find_report_scope
from domain.reports.report_formats import format_page_response, format_plain_line
from domain.reports.types import Report
from models import Incident

_DAY = timedelta(days=1)
#: Maximum duration of a shift, and maximum time since its end.
_MAX_SHIFT_DURATION, _MAX_TIME_SINCE_SHIFT = timedelta(days=8), timedelta(hours=12)
_MAX_LISTED_ITEMS = 30
#: Maximum number of projects in a draft for a group.
_MAX_PROJECTS = 20


def find_shift_to_hand_off(work: UnitOfWork, schedule_id: int) -> Period:
    """Return the period of the caller's current or recently ended shift, until now.

    If there is no such shift, return the current shift of the users on call. If nobody is on call,
    return the last 24 hours.
    """
    recent = list_schedule_shifts(
        work, schedule_id, Period(work.now - _MAX_SHIFT_DURATION, work.now)
    )
    joined = []
    for users, group in groupby(recent, lambda each: {user.id for user in each.users}):
        parts = list(group)
        joined.append((users, parts[0].starts_at, parts[-1].ends_at))
    mine = [each for each in joined if work.actor.id in each[0]]
    if mine and mine[-1][2] > work.now - _MAX_TIME_SINCE_SHIFT:
        return Period(mine[-1][1], work.now)
    if joined and joined[-1][0]:
        return Period(joined[-1][1], work.now)
    return Period(work.now - _DAY, work.now)


def build_handoff_draft(
    work: UnitOfWork, holder: ProjectOrGroup, schedule: OnCallSchedule, shift: Period
) -> str:
    """Return the draft of a handoff note in Markdown.

    For a group, only the first `_MAX_PROJECTS` projects are checked, and projects without content
    are omitted.
    """
    lines: list[str] = []
    for project in islice(find_report_scope(work, holder).projects.values(), _MAX_PROJECTS):
        told = list(_format_project(work, project, schedule, shift, is_one_of_many=holder.is_group))
        lines += [f"## {project.path}", "", *told] if told and holder.is_group else told
    if not lines:
        lines = ["There are no open alerts or incidents, and nobody was paged.", ""]
    return "\n".join([*lines, "**Notes**", "", ""])


def _format_project(
    work: UnitOfWork,
    project: ProjectView,
    schedule: OnCallSchedule,
    shift: Period,
    *,
    is_one_of_many: bool,
) -> Iterator[str]:
    report = build_on_call_report(work, project, shift, schedule.time_zone)
    wanted = AlertFilter(project_id=project.id, statuses=OPEN_STATUSES)
    part = AlertSlice(size=_MAX_LISTED_ITEMS, order=SORT_ORDERS["severity"])
    alerts = list_alerts(wanted, part, session=work.session).items
    of_incidents = IncidentFilter(project_id=project.id, statuses=OPEN_STATUSES)
    newest = IncidentSlice(size=_MAX_LISTED_ITEMS, order=NEWEST_FIRST)
    incidents = list_incidents(of_incidents, newest, session=work.session).items
    if not is_one_of_many or alerts or incidents or report.totals.alerts or report.pages:
        yield from _format_lines(report, alerts, incidents)


def _format_lines(
    report: Report, alerts: Sequence[AlertListRow], incidents: Sequence[Incident]
) -> Iterator[str]:
    begin, totals = format_local_time(report.starts_at, report.time_zone), report.totals
    yield from ("**Open alerts**", "")
    for each in alerts:
        by = f", assigned to @{each.assignee}" if each.assignee else ""
        state = f"{each.severity}, {each.status}{by}"
        yield f"- #{each.iid} {format_plain_line(each.title)}: {state}"
    if not alerts:
        yield "- none"
    yield from ("", "**Open incidents**", "")
    yield from (
        f"- #{each.iid} {format_plain_line(each.title)}: {each.status}" for each in incidents
    )
    if not incidents:
        yield "- none"
    yield from ("", f"**This shift, since {begin}**", "")
    counts = {"Alerts": totals.alerts, "pages": totals.pages, "not yet answered": totals.unanswered}
    yield "- " + ", ".join(f"{what}: {count}" for what, count in counts.items())
    for page in report.pages[-_MAX_LISTED_ITEMS:]:
        at = format_local_time(page.at, report.time_zone)
        what = f"{page.subject_reference} {format_plain_line(page.title)}"
        response = format_page_response(page.answer)
        yield f"- {at}: {what}, to {format_plain_line(page.name)}, {response}"
    yield ""
