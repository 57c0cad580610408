"""Builds the report for a project or group and a period from stored data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from domain.access.actor import UnitOfWork
from domain.alerts.listing.types import build_alert_url, build_incident_url
from domain.core.types.base import get_column_values
from domain.paging.escalations.policy_steps import TargetKind, format_target
from domain.paging.escalations.reporting.page_status import find_contact_outcomes
from domain.paging.on_call.schedule_plans import Period
from domain.projects.access import build_namespace, read_permissions
from domain.projects.row_ownership import select_project_ids
from domain.projects.views import GroupView, ProjectOrGroup, ProjectView, get_viewer
from domain.reports import report_queries
from domain.reports.figures import ReportFigures, find_first_answer
from domain.reports.handoff_notes import find_handoff_notes_in_period
from domain.reports.noisy_rules import MAX_RULES, MIN_OPENINGS, NoisyRuleCounter
from domain.reports.report_queries import ListedPage, ReportFilter
from domain.reports.types import MAX_LISTED_PAGES, PageCondition, Report, ReportedPage
from models import Project


@dataclass(frozen=True, kw_only=True)
class ReportScope:
    """The projects whose alerts a report covers, and the paths of omitted projects."""

    #: Projects by ID, in the order of their paths.
    projects: Mapping[int, ProjectView]
    #: Paths of projects whose monitoring is turned off or not visible to the reader.
    left_out: Sequence[str] = ()


def find_report_scope(work: UnitOfWork, holder: ProjectOrGroup) -> ReportScope:
    """Return the projects that a report about a project or group covers."""
    if not isinstance(holder, GroupView):
        return ReportScope(projects={holder.id: holder})
    below = (
        select(Project).where(Project.id.in_(select_project_ids(holder))).order_by(Project.path_key)
    )
    rows = work.session.scalars(below).all()
    permissions = read_permissions(
        get_viewer(work), map(build_namespace, rows), session=work.session
    )
    seen = [
        permissions.build_project_view(each) for each in rows if permissions.can_see_project(each)
    ]
    return ReportScope(
        projects={each.id: each for each in seen if each.can_see_alerts},
        left_out=[each.path for each in seen if not each.can_see_alerts],
    )


def build_on_call_report(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    period: Period,
    time_zone: str,
    lists_page: PageCondition | None = None,
) -> Report:
    """Return the report for a period, with the pages that meet a condition."""
    scope, session = find_report_scope(work, holder), work.session
    wanted = ReportFilter(tuple(scope.projects), period, lists_page)
    ranked = report_queries.rank_rules(
        wanted, least_openings=MIN_OPENINGS, maximum=MAX_RULES, session=session
    )
    figures, noisy = ReportFigures(time_zone, period), NoisyRuleCounter(ranked)
    for alert in report_queries.read_alerts(wanted, session=session):
        figures.count_alert(alert)
        noisy.count_alert(alert)
    for alert, paged_at in report_queries.read_paged_alerts(wanted, session=session):
        figures.count_answer(alert, paged_at)
    for incident, paged_at in report_queries.read_paged_incidents(wanted, session=session):
        figures.count_answer(incident, paged_at)
    for page in report_queries.read_pages(wanted, session=session):
        figures.count_page(page)
    numbers = report_queries.find_listed_page_ids(wanted, session=session)
    return Report(
        project=None if holder.is_group else holder.path,
        group=holder.path if holder.is_group else None,
        projects_left_out=[*scope.left_out],
        starts_at=period.start,
        ends_at=period.end,
        time_zone=time_zone,
        totals=figures.build_totals(),
        pages=[*_read_pages(work, scope, numbers[-MAX_LISTED_PAGES:])],
        earlier_pages=max(len(numbers) - MAX_LISTED_PAGES, 0),
        times=figures.build_response_times(),
        trend_unit=figures.buckets.unit,
        trend=figures.build_trend(),
        people=figures.build_user_figures(),
        hours=figures.count_pages_by_hour(),
        weekday_hours=figures.count_pages_by_weekday(),
        noisy_rules=noisy.build_noisy_rules(
            {each.id: each.path for each in scope.projects.values()}
        ),
        handover_notes=find_handoff_notes_in_period(work, holder, tuple(scope.projects), period),
    )


def read_all_pages(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    period: Period,
    lists_page: PageCondition | None = None,
) -> Iterator[ReportedPage]:
    """Lazily yield all pages in a period that meet a condition, in chronological order."""
    scope = find_report_scope(work, holder)
    wanted = ReportFilter(tuple(scope.projects), period, lists_page)
    numbers = report_queries.find_listed_page_ids(wanted, session=work.session)
    return _read_pages(work, scope, numbers, releases_connection=True)


def _read_pages(
    work: UnitOfWork, scope: ReportScope, ids: Sequence[int], *, releases_connection: bool = False
) -> Iterator[ReportedPage]:
    for start in range(0, len(ids), report_queries.BATCH_SIZE):
        some = list(ids[start : start + report_queries.BATCH_SIZE])
        try:
            pages = [
                *_build_pages(work, scope, report_queries.list_pages(some, session=work.session))
            ]
        finally:
            # A slow or disconnected client must not occupy the database connection.
            if releases_connection:
                work.session.close()
        yield from pages


def _build_pages(
    work: UnitOfWork, scope: ReportScope, pages: Sequence[ListedPage]
) -> Iterator[ReportedPage]:
    batches = {each.batch_id for each in pages if each.batch_id is not None}
    contacts = find_contact_outcomes(batches, session=work.session)
    for page in pages:
        alert, project = page.alert, scope.projects[page.alert.project_id]
        is_channel = page.channel_id is not None
        name = format_target(TargetKind.CHANNEL, page.channel) if is_channel else None
        url = build_incident_url if alert.is_incident else build_alert_url
        yield ReportedPage(
            **get_column_values(page, ReportedPage),
            project=project.path,
            alert_iid=None if alert.is_incident else alert.iid,
            incident_iid=alert.iid if alert.is_incident else None,
            title=alert.title,
            severity=alert.severity,
            name=name or format_target(TargetKind.USER, page.user),
            contacts=tuple(contacts.get(page.batch_id or 0, ())),
            answer=find_first_answer(alert, page.at),
            web_url=url(project.path, alert.iid, work.settings.base_url),
        )
