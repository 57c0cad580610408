"""Drafts of handoff notes, with open alerts and the events of the shift."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby, islice

from domain.access.actor import Work
from domain.alerts.listing.filters import OPEN_STATUSES, AlertFilter
from domain.alerts.listing.queries import AlertRow, list_alerts
from domain.alerts.listing.sort_orders import SORT_ORDERS, AlertSlice
from domain.core.time_zones import local_time
from domain.incidents.listing import NEWEST, IncidentFilter, IncidentSlice, list_incidents
from domain.paging.on_call.schedule_values import Period
from domain.paging.on_call.shifts import shifts_of
from domain.paging.on_call.types import OnCallSchedule
from domain.projects.views import Holder, ProjectView
from domain.reports.reading import report_of
from domain.reports.scope import scope_of
from domain.reports.types import Report, ReportedPage
from domain.reports.writing import answer_words, plain
from models import Incident

_DAY = timedelta(days=1)
#: Maximum duration of a shift, and maximum time since its end.
_LONGEST_SHIFT, _JUST_OVER = timedelta(days=8), timedelta(hours=12)
_MOST_NAMED = 30
#: Maximum number of projects of a group.
_MOST_PROJECTS = 20
_QUIET = ("There are no open alerts or incidents, and nobody was paged.", "")


def shift_to_hand_over(work: Work, schedule_id: int) -> Period:
    """Return the caller's current shift, or one that has just ended, up to now.

    Otherwise, return the shift of the users on call. If there are none, return the last day.
    """
    recent = shifts_of(work, schedule_id, Period(work.now - _LONGEST_SHIFT, work.now))
    joined = [
        (users, parts[0].starts_at, parts[-1].ends_at)
        for users, parts in (
            (users, list(group))
            for users, group in groupby(recent, lambda each: {user.id for user in each.users})
        )
    ]
    mine = [each for each in joined if work.actor.id in each[0]]
    if mine and mine[-1][2] > work.now - _JUST_OVER:
        return Period(mine[-1][1], work.now)
    if joined and joined[-1][0]:
        return Period(joined[-1][1], work.now)
    return Period(work.now - _DAY, work.now)


def draft_of(work: Work, holder: Holder, schedule: OnCallSchedule, shift: Period) -> str:
    """Return the draft of a handoff note in Markdown.

    For a group, it covers the first projects with anything to report.
    """
    lines: list[str] = []
    for project in islice(scope_of(work, holder).projects.values(), _MOST_PROJECTS):
        told = list(_project_lines(work, project, schedule, shift, is_one_of_many=holder.is_group))
        lines += [f"## {project.path}", "", *told] if told and holder.is_group else told
    return "\n".join([*(lines or _QUIET), "**Notes**", "", ""])


def _project_lines(
    work: Work,
    project: ProjectView,
    schedule: OnCallSchedule,
    shift: Period,
    *,
    is_one_of_many: bool,
) -> Iterator[str]:
    report = report_of(work, project, shift, schedule.time_zone)
    wanted = AlertFilter(project_id=project.id, statuses=OPEN_STATUSES)
    part = AlertSlice(size=_MOST_NAMED, order=SORT_ORDERS["severity"])
    alerts = list_alerts(wanted, part, session=work.session).items
    of_incidents = IncidentFilter(project_id=project.id, statuses=OPEN_STATUSES)
    newest = IncidentSlice(size=_MOST_NAMED, order=NEWEST)
    incidents = list_incidents(of_incidents, newest, session=work.session).items
    has_something = alerts or incidents or report.totals.alerts or report.pages
    return iter(()) if is_one_of_many and not has_something else _lines(report, alerts, incidents)


def _lines(
    report: Report, alerts: Sequence[AlertRow], incidents: Sequence[Incident]
) -> Iterator[str]:
    begin, totals = local_time(report.starts_at, report.time_zone), report.totals
    yield "**Open alerts**"
    yield ""
    yield from (f"- #{each.iid} {plain(each.title)}: {_state(each)}" for each in alerts)
    if not alerts:
        yield "- none"
    yield from ("", "**Open incidents**", "")
    yield from (f"- #{each.iid} {plain(each.title)}: {each.status}" for each in incidents)
    if not incidents:
        yield "- none"
    yield from ("", f"**This shift, since {begin}**", "")
    counts = {"Alerts": totals.alerts, "pages": totals.pages, "not yet answered": totals.unanswered}
    yield "- " + ", ".join(f"{what}: {count}" for what, count in counts.items())
    yield from (_page(each, report.time_zone) for each in report.pages[-_MOST_NAMED:])
    yield ""


def _state(alert: AlertRow) -> str:
    by = f", assigned to @{alert.assignee}" if alert.assignee else ""
    return f"{alert.severity}, {alert.status}{by}"


def _page(page: ReportedPage, time_zone: str) -> str:
    at = local_time(page.at, time_zone)
    what = f"{page.about} {plain(page.title)}"
    return f"- {at}: {what}, to {plain(page.name)}, {answer_words(page.answer)}"
