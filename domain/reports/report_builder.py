"""Builds the report for a project or group and a period from stored data."""

from collections.abc import Iterable, Iterator, Sequence

from domain.access.actor import UnitOfWork
from domain.alerts.listing.types import build_alert_url, build_incident_url
from domain.paging.escalations.page_status import find_contact_outcomes
from domain.paging.escalations.steps import TargetKind, format_target
from domain.paging.escalations.types import ContactOutcome
from domain.paging.on_call.schedule_values import Period
from domain.projects.views import ProjectOrGroup, ProjectView
from domain.reports import rows
from domain.reports.figures import ReportFigures, find_first_answer
from domain.reports.handoff_notes import find_notes_in_period
from domain.reports.noise import MAX_RULES, MIN_OPENINGS, NoisyRules
from domain.reports.rows import ListedPage, ReportFilter
from domain.reports.scope import ReportScope, find_report_scope
from domain.reports.types import MAX_LISTED_PAGES, PageCondition, Report, ReportedPage


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
    ranked = rows.rank_rules(
        wanted, least_openings=MIN_OPENINGS, maximum=MAX_RULES, session=session
    )
    figures, noisy = ReportFigures(time_zone, period), NoisyRules(ranked)
    for alert in rows.read_alerts(wanted, session=session):
        figures.count_alert(alert)
        noisy.count_alert(alert)
    for alert, paged_at in rows.read_paged_alerts(wanted, session=session):
        figures.count_answer(alert, paged_at)
    for incident, paged_at in rows.read_paged_incidents(wanted, session=session):
        figures.count_answer(incident, paged_at)
    for page in rows.read_pages(wanted, session=session):
        figures.count_page(page)
    numbers = rows.find_page_numbers(wanted, session=session)
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
        handover_notes=find_notes_in_period(work, holder, tuple(scope.projects), period),
    )


def read_all_pages(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    period: Period,
    lists_page: PageCondition | None = None,
) -> Iterator[ReportedPage]:
    """Yield all pages in a period that meet a condition lazily, in chronological order."""
    scope = find_report_scope(work, holder)
    wanted = ReportFilter(tuple(scope.projects), period, lists_page)
    numbers = rows.find_page_numbers(wanted, session=work.session)
    return _read_pages(work, scope, numbers, releases_connection=True)


def _read_pages(
    work: UnitOfWork, scope: ReportScope, ids: Sequence[int], *, releases_connection: bool = False
) -> Iterator[ReportedPage]:
    for start in range(0, len(ids), rows.BATCH_SIZE):
        some = list(ids[start : start + rows.BATCH_SIZE])
        try:
            pages = _build_pages(work, scope, rows.list_pages(some, session=work.session))
        finally:
            # A slow or disconnected client must not block the connection.
            if releases_connection:
                work.session.close()
        yield from pages


def _build_pages(
    work: UnitOfWork, scope: ReportScope, pages: Sequence[ListedPage]
) -> list[ReportedPage]:
    batches = {each.batch_id for each in pages if each.batch_id is not None}
    contacts = find_contact_outcomes(batches, session=work.session)
    return [
        _build_page(
            work, scope.projects[each.alert.project_id], each, contacts.get(each.batch_id or 0)
        )
        for each in pages
    ]


def _build_page(
    work: UnitOfWork,
    project: ProjectView,
    page: ListedPage,
    contacts: Iterable[ContactOutcome] | None,
) -> ReportedPage:
    is_channel = page.channel_id is not None
    name = format_target(TargetKind.CHANNEL, page.channel) if is_channel else None
    url = build_incident_url if page.alert.is_incident else build_alert_url
    return ReportedPage(
        at=page.at,
        project=project.path,
        alert_iid=None if page.alert.is_incident else page.alert.iid,
        incident_iid=page.alert.iid if page.alert.is_incident else None,
        title=page.alert.title,
        severity=page.alert.severity,
        user=page.user,
        name=name or format_target(TargetKind.USER, page.user),
        state=page.state,
        contacts=tuple(contacts or ()),
        accepted_at=page.accepted_at,
        answer=find_first_answer(page.alert, page.at),
        escalation_policy=page.policy,
        route=page.route,
        round=page.round,
        step=page.step,
        asked_by=page.asked_by,
        web_url=url(project.path, page.alert.iid, work.settings.base_url),
    )
