"""Opens incidents at the request of users or rules.

Omitted fields are composed from the first alert, as in GitLab. Plain text from a sender is escaped
for Markdown. The `platform_incident_markdown` annotation contains Markdown, and is appended
unchanged.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import FORMATS, get_format
from domain.alerts.listing.types import build_alert_url
from domain.alerts.parsing.incoming_alert import (
    MissingAttributesError,
    NoValidItemError,
    Severity,
    UnreadableBodyError,
)
from domain.alerts.parsing.text_conversion import truncate_to_length
from domain.audit.events import EventActor
from domain.core.errors import InvalidError
from domain.core.types.base import get_column_values
from domain.incidents.alert_links import (
    LinkedAlert,
    check_not_in_open_incident,
    claim_fingerprints,
    lock_alerts_to_link,
    store_alert_links,
)
from domain.incidents.listing import lock_incidents
from domain.incidents.rule_decisions import PlannedIncident
from domain.incidents.timeline import NewTimelineEntry, add_timeline_entries, build_alert_details
from domain.incidents.types import (
    MAX_INCIDENT_DESCRIPTION_LENGTH,
    EntryKind,
    IncidentStatus,
    NewIncident,
    convert_to_urgency,
    validate_incident_description,
    validate_incident_title,
)
from domain.projects.views import ProjectView
from models import Alert, Delivery, Incident

_SEVERITIES = tuple(Severity)
_FORMATS_WITH_MARKDOWN = tuple(each.name for each in FORMATS if each.has_markdown)


@dataclass(frozen=True, kw_only=True)
class AlertReport:
    """An alert as described by its last report."""

    id: int
    iid: int
    title: str
    description: str | None
    severity: Severity
    service: str | None
    monitoring_tool: str | None
    hosts: tuple[str, ...]
    query: str | None
    started_at: datetime
    #: Markdown from the sender. It is only available for some formats, and only while the payload
    #: is stored.
    markdown: str | None


def find_alert_reports(
    alert_ids: Iterable[int], *, session: Session, parser_settings: ParserSettings
) -> Mapping[int, AlertReport]:
    """Return the last report of each alert, by alert ID.

    IDs without an alert are omitted. Each body is parsed once, and only one body is in memory at a
    time.
    """
    alerts = session.scalars(select(Alert).where(Alert.id.in_(alert_ids))).all()
    markdown = _find_markdown_description(alerts, session=session, parser_settings=parser_settings)
    return {
        alert.id: AlertReport(
            **get_column_values(alert, AlertReport)
            | {
                "severity": _SEVERITIES[alert.severity],
                "hosts": tuple(alert.hosts.split("\n")) if alert.hosts else (),
                "query": alert.query or None,
            },
            markdown=markdown.get(alert.id),
        )
        for alert in alerts
    }


def _find_markdown_description(
    alerts: Sequence[Alert], *, session: Session, parser_settings: ParserSettings
) -> Mapping[int, str]:
    by_delivery: dict[int, list[Alert]] = defaultdict(list)
    for alert in alerts:
        if alert.delivery_id is not None:
            by_delivery[alert.delivery_id].append(alert)
    with_markdown = session.scalars(
        select(Delivery.id).where(
            Delivery.id.in_(by_delivery), Delivery.format.in_(_FORMATS_WITH_MARKDOWN)
        )
    ).all()
    found: dict[int, str] = {}
    for delivery_id in with_markdown:
        delivery = session.execute(
            select(Delivery.body, Delivery.format, Delivery.received_at).where(
                Delivery.id == delivery_id
            )
        ).one()
        body_format = get_format(delivery.format)
        value = body_format.decode_stored_body(delivery.body, reading=parser_settings)
        for alert in by_delivery[delivery_id]:
            with suppress(UnreadableBodyError, MissingAttributesError, NoValidItemError):
                item = body_format.reduce_body_to_item(value, alert.item_index)
                parsed = body_format.parse(item, now=delivery.received_at, reading=parser_settings)
                markdown = next((each.markdown for each in parsed.alerts), None)
                if markdown is not None:
                    found[alert.id] = markdown
    return found


#: Title of alerts for which the sender provides no title.
_DEFAULT_ALERT_TITLE = "New: Alert"
#: Pattern of characters that start emphasis, code, links, HTML and escapes. An underscore starts
#: emphasis only at the edge of a word.
_INLINE_SYNTAX = re.compile(
    r"[`*\[]|\\(?=[!-/:-@\[-`{-~]|$)|<(?=[A-Za-z/!?])|&(?=#?\w+;)|~(?=~)|(?<!\w)_|_(?!\w)",
    re.MULTILINE,
)
#: Pattern of characters that start a heading, quotation, list or rule at the beginning of a line.
_BLOCK_SYNTAX = re.compile(r"^(\s*)(\d+(?=[.)])|[#>+=-])", re.MULTILINE)
_BACKTICKS = re.compile("`+")
_LINE_BREAK = "  \n"
_HORIZONTAL_RULE = "\n\n---\n\n"


def compose_incident_description(report: AlertReport, alert_url: str) -> str:
    """Return a description that contains the alert's main fields and its sender's Markdown."""
    summary = _LINE_BREAK.join(_compose_lines(report, alert_url))
    if not report.markdown:
        return summary
    room = MAX_INCIDENT_DESCRIPTION_LENGTH - len(summary) - len(_HORIZONTAL_RULE)
    return f"{summary}{_HORIZONTAL_RULE}{truncate_to_length(report.markdown, room)}"


def _compose_lines(report: AlertReport, alert_url: str) -> Iterator[str]:
    yield f"**Start time:** {_format_time(report.started_at)}"
    yield f"**Severity:** {report.severity.value}"
    if report.query:
        yield f"**full_query:** {_format_code_span(report.query)}"
    for name, value in (
        ("Service", report.service),
        ("Monitoring tool", report.monitoring_tool),
        ("Hosts", " ".join(report.hosts)),
        ("Description", report.description),
    ):
        if value:
            yield f"**{name}:** {escape_markdown(value)}"
    yield f"**Gatebell alert:** <{alert_url}>"


def _format_time(moment: datetime) -> str:
    """Return a time in GitLab's format, such as `12 September 2019, 6:00AM (UTC)`."""
    utc = moment.astimezone(UTC)
    return f"{utc.day} {utc:%B} {utc.year}, {utc.hour % 12 or 12}:{utc:%M%p} (UTC)"


def escape_markdown(text: str) -> str:
    """Escape plain text for Markdown."""
    text = _INLINE_SYNTAX.sub(r"\\\g<0>", text.strip())
    text = _BLOCK_SYNTAX.sub(
        lambda found: f"{found[0]}\\" if found[2].isdigit() else f"{found[1]}\\{found[2]}", text
    )
    # Keep line breaks, but remove blank lines, which would end the list of fields.
    lines = (line.strip() for line in text.splitlines())
    return _LINE_BREAK.join(line for line in lines if line)


def _format_code_span(text: str) -> str:
    """Return a code span with a fence that the text does not contain (CommonMark section 6.1)."""
    inner = " ".join(text.split())
    fence = "`" * (max((len(found) for found in _BACKTICKS.findall(inner)), default=0) + 1)
    padding = " " if inner.startswith("`") or inner.endswith("`") else ""
    return f"{fence}{padding}{inner}{padding}{fence}"


def open_incident(
    work: UnitOfWork, project: ProjectView, new_incident: NewIncident, *, actor: EventActor | None
) -> Incident:
    """Open an incident.

    Raise InvalidError for an invalid field, NotFoundError for an unknown alert, or ConflictError if
    an open incident already contains one of the alerts.
    """
    session, now = work.session, work.now
    counter = lock_incidents(project.id, session=session)
    alerts = lock_alerts_to_link(project.id, new_incident.alerts, session=session)
    check_not_in_open_incident(alerts, session=session)
    counter.last_iid += 1
    if alerts:
        first = next(alert for alert in alerts if alert.iid == new_incident.alerts[0])
        reports = find_alert_reports(
            [first.id], session=session, parser_settings=work.policy(ParserSettings)
        )
        url = build_alert_url(project.path, first.iid, work.settings.base_url)
        new_incident = _fill_omitted_fields(new_incident, reports[first.id], counter.last_iid, url)
    row = _build_row(project.id, counter.last_iid, new_incident, actor=actor, now=now)
    _store_incidents([(row, alerts, {})], actor=actor, session=session, now=now)
    return row


def _store_incidents(
    opened: Sequence[tuple[Incident, Sequence[LinkedAlert], Mapping[str, str]]],
    *,
    actor: EventActor | None,
    session: Session,
    now: datetime,
) -> None:
    """Store new incidents of a project, with their alerts and first timeline entries."""
    for row, alerts, _ in opened:
        row.alerts = len(alerts)
        session.add(row)
    session.flush()  # The flush assigns the IDs.
    links = {row.id: alerts for row, alerts, _ in opened if alerts}
    if links:
        store_alert_links(links, session=session)
        claim_fingerprints(links, opened[0][0].project_id, session=session)
    entries = [
        NewTimelineEntry(
            incident_id=row.id,
            kind=EntryKind.OPENED,
            details={**details, **build_alert_details([alert.iid for alert in alerts])},
        )
        for row, alerts, details in opened
    ]
    add_timeline_entries(entries, actor=actor, session=session, now=now)


def _fill_omitted_fields(
    new_incident: NewIncident, report: AlertReport, iid: int, alert_url: str
) -> NewIncident:
    """Return the incident with omitted fields set from an alert."""
    title, description = new_incident.title, new_incident.description
    if title is None:
        title = f"New: Incident {iid}" if report.title == _DEFAULT_ALERT_TITLE else report.title
    if description is None:
        description = compose_incident_description(report, alert_url)
    severity = new_incident.severity or report.severity
    composed = {"title": title, "description": description, "severity": severity}
    return new_incident.model_copy(update=composed)


def _build_row(
    project_id: int, iid: int, new_incident: NewIncident, *, actor: EventActor | None, now: datetime
) -> Incident:
    if new_incident.title is None:
        message = "The incident has no title. Specify a title, or alerts to derive it from."
        raise InvalidError(message, field="title")
    return Incident(
        project_id=project_id,
        iid=iid,
        title=validate_incident_title(new_incident.title),
        description=validate_incident_description(new_incident.description or ""),
        urgency=convert_to_urgency(new_incident.severity or Severity.UNKNOWN),
        status=IncidentStatus.TRIGGERED.value,
        closes_when_resolved=bool(new_incident.close_when_resolved),
        quiets_alerts=bool(new_incident.quiet_alerts),
        author_id=actor.id if actor else None,
        author_name=actor.name if actor else "",
        created_at=now,
        updated_at=now,
    )


def open_incidents_by_rules(
    project_id: int,
    openings: Sequence[PlannedIncident],
    *,
    reading: ParserSettings,
    alert_url: Callable[[int], str],
    session: Session,
    now: datetime,
) -> list[Incident]:
    """Store the incidents that rules open, with a fixed number of statements.

    `alert_url` returns the URL of an alert's page. The caller must have locked the incidents of the
    project.
    """
    if not openings:
        return []
    counter = lock_incidents(project_id, session=session)
    firsts = [opening.alerts[0].id for opening in openings]
    reports = find_alert_reports(firsts, session=session, parser_settings=reading)
    rows = []
    for iid, opening in enumerate(openings, counter.last_iid + 1):
        rule, report = opening.rule, reports[opening.alerts[0].id]
        new = NewIncident(
            close_when_resolved=rule.closes_when_resolved, quiet_alerts=rule.quiets_alerts
        )
        filled = _fill_omitted_fields(new, report, iid, alert_url(report.iid))
        row = _build_row(project_id, iid, filled, actor=None, now=now)
        row.urgency, row.rule_id = opening.urgency, rule.id
        rows.append(row)
    counter.last_iid += len(openings)
    opened = [
        (row, opening.alerts, {"rule": opening.rule.name})
        for row, opening in zip(rows, openings, strict=True)
    ]
    _store_incidents(opened, actor=None, session=session, now=now)
    return rows
