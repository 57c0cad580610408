"""Formats reports as Markdown and CSV."""

from calendar import day_abbr, day_name
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from domain.core.clock import format_api_time
from domain.core.csv_lines import format_csv_line
from domain.core.durations import format_duration
from domain.core.time_zones import format_local_time
from domain.core.types.base import Resource
from domain.incidents.opening import escape_markdown
from domain.reports.comparison import Comparison
from domain.reports.types import AnswerKind, PageAnswer, Report, ReportedPage

_PAGE_COLUMNS = (
    *("paged_at", "alert", "incident", "title", "severity", "paged", "contacts", "accepted_at"),
    *("answer", "answered_by", "answered_at", "answered_after_seconds"),
    *("escalation_policy", "route", "round", "step", "asked_by"),
)
_EMPTY_CELL = "-"


def format_plain_line(text: str) -> str:
    """Return untrusted text as one line of Markdown that is displayed literally."""
    return escape_markdown(" ".join(text.split())).replace("|", "\\|")


def format_duration_cell(seconds: float | None) -> str:
    """Return a duration as text, such as `1h30m`, or `-` if the duration is None."""
    return _EMPTY_CELL if seconds is None else format_duration(timedelta(seconds=int(seconds)))


def format_page_response(answer: PageAnswer) -> str:
    """Return the response to a page as text, such as `acknowledged by @alice after 2m`."""
    if answer.kind is AnswerKind.NONE:
        return "not yet answered"
    after = "" if answer.seconds is None else f" after {format_duration_cell(answer.seconds)}"
    if answer.kind is AnswerKind.ENDED:
        return f"resolved automatically{after}"
    return f"{answer.kind.value} by {f'@{answer.by}' if answer.by else 'the command line'}{after}"


def format_reason(page: ReportedPage) -> str:
    """Return the reason for a page as text: policy, step, and how the policy was chosen."""
    if page.incident_iid is not None:
        return f"paged by {page.asked_by}" if page.asked_by else _EMPTY_CELL
    again = f", round {page.round}" if page.round > 1 else ""
    if page.escalation_policy is None:
        return f"step {page.step}{again}"
    chosen = f"chosen by the route {page.route}" if page.route else "the default policy"
    return f"{page.escalation_policy}, step {page.step}{again}, {chosen}"


def format_contacts(page: ReportedPage) -> str:
    """Return the contacts of a page, with the state of the message to each contact."""
    return ", ".join(f"{each.name} ({each.state.replace('_', ' ')})" for each in page.contacts)


def format_report(report: Report, compared: Comparison) -> Iterator[str]:
    """Yield the lines of a complete report, without line breaks."""

    def format_local(moment: datetime) -> str:
        return format_local_time(moment, report.time_zone)

    yield f"# On-call report of {format_plain_line(report.project or report.group or '')}"
    yield ""
    yield f"From {format_local(report.starts_at)} to {format_local(report.ends_at)}."
    yield ""
    if report.projects_left_out:
        yield from (f"Not included: {format_plain_line(', '.join(report.projects_left_out))}.", "")
    before = compared.previous.name.capitalize() if compared.previous else "Period before"
    figures = (
        (
            name,
            *(
                format_duration_cell(each) if is_time or each is None else f"{each:,}"
                for each in cells
            ),
        )
        for name, *cells, is_time in compared.key_figures
    )
    yield from _format_table(("Figure", "Value", before), figures)
    yield ""
    yield from _format_table(("Metric", "Count"), _list_totals(report))
    if report.pages:
        heads = (
            *("Time", "Alert or incident", "Recipient", "Contacts", "Accepted"),
            *("Response", "Reason"),
        )
        pages = (
            _format_page_row(each, format_local, of_group=report.group) for each in report.pages
        )
        yield from _format_section("Pages", heads, pages)
    if report.earlier_pages:
        pages_are = "page is" if report.earlier_pages == 1 else "pages are"
        yield from ("", f"{report.earlier_pages:,} earlier {pages_are} not listed.")
    yield from _format_section(
        "Response times",
        ("Severity", "Alerts", "Acknowledged", "Median", "90%", "Resolved", "Median", "90%"),
        (
            (
                *(each.severity or "all", each.alerts, each.acknowledged),
                *map(format_duration_cell, (each.acknowledge_median, each.acknowledge_90th)),
                each.resolved,
                *map(format_duration_cell, (each.resolve_median, each.resolve_90th)),
            )
            for each in report.times
        ),
    )
    yield from _format_on_call_load(report, compared)
    if report.noisy_rules:
        yield from _format_section(
            "Noisy rules",
            ("Rule", "Alerts", "Pages", "Short-lived", "Suggestion"),
            (
                (
                    format_plain_line(
                        f"{each.title} ({each.project})" if report.group else each.title
                    ),
                    *(each.openings, each.pages, each.alone, each.reason),
                )
                for each in report.noisy_rules
            ),
        )
    for note in report.handover_notes:
        by = f"@{note.user}" if note.user else "the command line"
        schedule = format_plain_line(note.schedule)
        yield from ("", f"## Handoff note for {schedule}, {format_local(note.created_at)}, by {by}")
        yield from ("", note.text)


def _format_on_call_load(report: Report, compared: Comparison) -> Iterator[str]:
    if compared.loads:
        yield from _format_section(
            "People",
            ("Person", "Pages", "Acknowledged", "Nights with a page", "On call"),
            (
                (
                    *(f"@{each.user}", each.pages, each.acknowledged, each.nights),
                    format_duration_cell(seconds - seconds % 60 if seconds else None),
                )
                for each, seconds in compared.loads
            ),
        )
    if any(report.hours):
        columns = enumerate(zip(*report.weekday_hours, strict=True))
        yield from _format_section(
            f"Pages to people by weekday and hour ({report.time_zone})",
            ("Hour", *day_abbr),
            ((f"{hour:02}:00", *counts) for hour, counts in columns if any(counts)),
        )


def _list_totals(report: Report) -> Iterator[tuple[str, int]]:
    totals = report.totals
    yield "alerts", totals.alerts
    yield "acknowledged alerts", totals.acknowledged
    yield "pages", totals.pages
    yield "paged people", totals.people
    yield "paged alerts", totals.paged_alerts
    yield "paged incidents", totals.paged_incidents
    yield "paged alerts and incidents: answered", totals.answered
    yield "paged alerts and incidents: resolved automatically", totals.ended_by_themselves
    yield "paged alerts and incidents: not yet answered", totals.unanswered


def _format_page_row(
    page: ReportedPage, local: Callable[[datetime], str], *, of_group: str | None
) -> Sequence[object]:
    project = format_plain_line(page.project) if of_group else ""
    project += " " if of_group and page.incident_iid else ""
    return (
        local(page.at),
        f"{project}{page.subject_reference} {format_plain_line(page.title)} ({page.severity})",
        format_plain_line(page.name),
        format_plain_line(format_contacts(page)) or _EMPTY_CELL,
        local(page.accepted_at) if page.accepted_at else _EMPTY_CELL,
        format_page_response(page.answer),
        format_plain_line(format_reason(page)),
    )


def _format_section(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]
) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    yield from _format_table(heads, rows)


def _format_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield _format_row(heads)
    yield _format_row(["---"] * len(heads))
    yield from map(_format_row, rows)


def _format_row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def format_pages_as_csv(pages: Iterable[ReportedPage], *, of_group: bool) -> Iterator[str]:
    """Yield pages as CSV lines. For a group, each line contains the project's path."""
    yield format_csv_line(("project_path", *_PAGE_COLUMNS) if of_group else _PAGE_COLUMNS)
    for page in pages:
        yield format_csv_line(
            (
                *([page.project] if of_group else []),
                *(format_api_time(page.at), page.alert_iid, page.incident_iid, page.title),
                *(page.severity, page.name),
                format_contacts(page),
                _format_time(page.accepted_at),
                *(page.answer.kind.value, page.answer.by, _format_time(page.answer.at)),
                *(page.answer.seconds, page.escalation_policy, page.route, page.round, page.step),
                page.asked_by,
            )
        )


def format_figures_as_csv(report: Report, compared: Comparison) -> str:
    """Return all figures as CSV, with one figure and its subject on each line."""
    return format_csv_line(("about", "name", "figure", "value")) + "".join(
        map(format_csv_line, _list_figures(report, compared))
    )


def _list_figures(report: Report, compared: Comparison) -> Iterator[tuple[object, ...]]:
    for name, value, before, is_duration in compared.key_figures:
        unit = "seconds" if is_duration else "count"
        yield from (("summary", name, unit, value), ("summary", name, f"{unit}_before", before))
    yield from _list_subject_figures("total", report.totals)
    for times in report.times:
        yield from _list_subject_figures("severity", times, "severity")
    for person, seconds in compared.loads:
        yield from _list_subject_figures("person", person, "user")
        yield "person", person.user, "on_call_seconds", seconds
    for hour, count in enumerate(report.hours):
        yield "hour", f"{hour:02}", "pages", count
    for day, counts in zip(day_name, report.weekday_hours, strict=True):
        for hour, count in enumerate(counts):
            yield "weekday_hour", f"{day} {hour:02}:00", "pages", count
    for rule in report.noisy_rules:
        yield from _list_subject_figures("rule", rule, "title")


def _list_subject_figures(
    what: str, figures: Resource, key: str = ""
) -> Iterator[tuple[object, ...]]:
    """Yield a CSV row for each figure of a subject.

    `key` is the name of the field that contains the subject's name. Without such a field, the name
    is `all`.
    """
    values = dict(figures)
    name = values.pop(key, None) or "all"
    for field, value in values.items():
        yield what, name, field, value


def _format_time(moment: datetime | None) -> str | None:
    return format_api_time(moment) if moment else None
