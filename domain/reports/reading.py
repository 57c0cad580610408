"""Makes the report of a project in a period from what is stored."""

from collections.abc import Mapping, Sequence

from domain.access.actor import Work
from domain.alerts.listing.types import alert_url
from domain.escalations.steps import TargetKind, target_words
from domain.escalations.types import ContactOutcome
from domain.on_call.plans import Period
from domain.projects.views import ProjectView
from domain.reports.figures import Counted
from domain.reports.handover_notes import notes_of_period
from domain.reports.noise import noisy_rules
from domain.reports.rows import CountedPage, read_alerts, read_contacts, read_entries, read_pages
from domain.reports.types import Report, ReportedPage


def _read_counted(work: Work, project: ProjectView, within: Period) -> Counted:
    """Return what there is to count of a period; raise InvalidError for too much."""
    return Counted(
        alerts=read_alerts(project.id, within, session=work.session),
        pages=read_pages(project.id, within, session=work.session),
        entries=read_entries(project.id, within, session=work.session),
    )


def report_of(work: Work, project: ProjectView, within: Period, time_zone: str) -> Report:
    """Return the report of a period; raise InvalidError for too much."""
    counted = _read_counted(work, project, within)
    contacts = read_contacts(project.id, within, session=work.session)
    return Report(
        project=project.path,
        starts_at=within.start,
        ends_at=within.end,
        time_zone=time_zone,
        totals=counted.totals(),
        pages=[_shown(work, project, page, counted, contacts) for page in counted.pages],
        times=counted.times(),
        people=counted.people(),
        hours=counted.hours(time_zone),
        noisy_rules=noisy_rules(counted),
        handover_notes=notes_of_period(work, project, within),
    )


def _shown(
    work: Work,
    project: ProjectView,
    page: CountedPage,
    counted: Counted,
    contacts: Mapping[int, Sequence[ContactOutcome]],
) -> ReportedPage:
    is_channel = page.channel_id is not None
    name = target_words(TargetKind.CHANNEL, page.channel) if is_channel else None
    return ReportedPage(
        at=page.at,
        alert_iid=page.alert.iid,
        alert_title=page.alert.title,
        severity=page.alert.severity,
        user=page.user,
        name=name or target_words(TargetKind.USER, page.user),
        state=page.state,
        contacts=tuple(contacts.get(page.batch_id or 0, ())),
        accepted_at=page.accepted_at,
        answer=counted.answer_to(page),
        escalation_policy=page.policy,
        route=page.route,
        round=page.round,
        step=page.step,
        web_url=alert_url(project.path, page.alert.iid, work.settings.base_url),
    )
