"""Opens incidents that users request, and incidents of rules.

Omitted fields are composed from the first alert, as in GitLab. Plain text of a sender is escaped
for Markdown. The annotation platform_incident_markdown contains Markdown, and is appended
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

from domain.alerts.formats.base import Reading
from domain.alerts.formats.registry import FORMATS, format_named
from domain.alerts.reading.incoming import MissingAttributes, NoValidItem, Severity, UnreadableBody
from domain.alerts.reading.text import cut
from domain.audit.events import Actor
from domain.core.errors import InvalidError
from domain.core.types.base import columns_of
from domain.incidents.links import LinkedAlert, check_free, hold, link, lock_alerts
from domain.incidents.listing import lock_incidents
from domain.incidents.rule_engine import Opening
from domain.incidents.timeline import NewEntry, add_entries, alerts_in
from domain.incidents.types import (
    LONGEST_DESCRIPTION,
    EntryKind,
    IncidentStatus,
    NewIncident,
    checked_description,
    checked_title,
    urgency_of,
)
from domain.projects.views import ProjectView
from models import Alert, Delivery, Incident

_SEVERITIES = tuple(Severity)
_WITH_MARKDOWN = tuple(each.name for each in FORMATS if each.has_markdown)


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
    #: Markdown of the sender. It is only available for some formats, and while the payload is
    #: stored.
    markdown: str | None


def read_reports(
    alert_ids: Iterable[int], *, session: Session, reading: Reading
) -> Mapping[int, AlertReport]:
    """Return the reports of alerts by ID. IDs without an alert are omitted.

    Each body is parsed once, and only one body is in memory at a time.
    """
    alerts = session.scalars(select(Alert).where(Alert.id.in_(alert_ids))).all()
    markdown = _markdown_of(alerts, session=session, reading=reading)
    return {alert.id: _report(alert, markdown.get(alert.id)) for alert in alerts}


def _report(alert: Alert, markdown: str | None) -> AlertReport:
    return AlertReport(
        **columns_of(alert, AlertReport)
        | {
            "severity": _SEVERITIES[alert.severity],
            "hosts": tuple(alert.hosts.split("\n")) if alert.hosts else (),
            "query": alert.query or None,
        },
        markdown=markdown,
    )


def _markdown_of(
    alerts: Sequence[Alert], *, session: Session, reading: Reading
) -> Mapping[int, str]:
    by_delivery: dict[int, list[Alert]] = defaultdict(list)
    for alert in alerts:
        if alert.delivery_id is not None:
            by_delivery[alert.delivery_id].append(alert)
    with_markdown = session.scalars(
        select(Delivery.id).where(Delivery.id.in_(by_delivery), Delivery.format.in_(_WITH_MARKDOWN))
    ).all()
    found: dict[int, str] = {}
    for delivery_id in with_markdown:
        delivery = session.execute(
            select(Delivery.body, Delivery.format, Delivery.received_at).where(
                Delivery.id == delivery_id
            )
        ).one()
        body_format = format_named(delivery.format)
        value = body_format.stored_value(delivery.body, reading=reading)
        for alert in by_delivery[delivery_id]:
            with suppress(UnreadableBody, MissingAttributes, NoValidItem):
                item = body_format.only_item(value, alert.item_index)
                parsed = body_format.parse(item, now=delivery.received_at, reading=reading)
                markdown = next((each.markdown for each in parsed.alerts), None)
                if markdown is not None:
                    found[alert.id] = markdown
    return found


#: Title of alerts whose sender provides none.
_NO_TITLE = "New: Alert"
#: Characters that start emphasis, code, links, HTML and escapes. An underscore only does so at the
#: edge of a word.
_ACTIVE = re.compile(
    r"[`*\[]|\\(?=[!-/:-@\[-`{-~]|$)|<(?=[A-Za-z/!?])|&(?=#?\w+;)|~(?=~)|(?<!\w)_|_(?!\w)",
    re.MULTILINE,
)
#: Characters that start a heading, quotation, list or rule at the beginning of a line.
_LEADING = re.compile(r"^(\s*)(\d+(?=[.)])|[#>+=-])", re.MULTILINE)
_BACKTICKS = re.compile("`+")
_LINE_BREAK = "  \n"
_RULE = "\n\n---\n\n"


def composed_title(report: AlertReport, iid: int) -> str:
    """Return the title of the incident with this number."""
    return f"New: Incident {iid}" if report.title == _NO_TITLE else report.title


def composed_description(report: AlertReport, alert_url: str) -> str:
    """Return a description that contains the alert's main fields and its sender's Markdown."""
    summary = _LINE_BREAK.join(_lines(report, alert_url))
    if not report.markdown:
        return summary
    room = LONGEST_DESCRIPTION - len(summary) - len(_RULE)
    return f"{summary}{_RULE}{cut(report.markdown, room)}"


def _lines(report: AlertReport, alert_url: str) -> Iterator[str]:
    yield f"**Start time:** {_time(report.started_at)}"
    yield f"**Severity:** {report.severity.value}"
    if report.query:
        yield f"**full_query:** {_code(report.query)}"
    for name, value in (
        ("Service", report.service),
        ("Monitoring tool", report.monitoring_tool),
        ("Hosts", " ".join(report.hosts)),
        ("Description", report.description),
    ):
        if value:
            yield f"**{name}:** {escaped(value)}"
    yield f"**Gatebell alert:** <{alert_url}>"


def _time(moment: datetime) -> str:
    """Return a time in the format of GitLab, such as `12 September 2019, 6:00AM (UTC)`."""
    utc = moment.astimezone(UTC)
    return f"{utc.day} {utc:%B} {utc.year}, {utc.hour % 12 or 12}:{utc:%M%p} (UTC)"


def escaped(text: str) -> str:
    """Escape plain text for Markdown."""
    text = _ACTIVE.sub(r"\\\g<0>", text.strip())
    text = _LEADING.sub(_escape_first, text)
    # Keep line breaks, but remove blank lines, which would end the list of fields.
    lines = (line.strip() for line in text.splitlines())
    return _LINE_BREAK.join(line for line in lines if line)


def _escape_first(found: re.Match[str]) -> str:
    mark = found[2]
    return f"{found[1]}{mark}\\" if mark.isdigit() else f"{found[1]}\\{mark}"


def _code(text: str) -> str:
    """Return a code span whose fence is longer than any in the text (CommonMark section 6.1)."""
    inner = " ".join(text.split())
    fence = "`" * (max((len(found) for found in _BACKTICKS.findall(inner)), default=0) + 1)
    padding = " " if inner.startswith("`") or inner.endswith("`") else ""
    return f"{fence}{padding}{inner}{padding}{fence}"


#: Function that returns the URL of an alert's page for its number.
AlertUrl = Callable[[int], str]


@dataclass(frozen=True, kw_only=True)
class Composer:
    """The dependencies for composing an incident from an alert."""

    reading: Reading
    alert_url: AlertUrl


def open_incident(
    project: ProjectView,
    new: NewIncident,
    *,
    by: Actor | None,
    session: Session,
    now: datetime,
    composer: Composer,
) -> Incident:
    """Open an incident.

    Raise InvalidError, NotFoundError, or ConflictError if an open incident already contains an
    alert.
    """
    counter = lock_incidents(project.id, session=session)
    alerts = lock_alerts(project.id, new.alerts, session=session)
    check_free(alerts, session=session)
    counter.last_iid += 1
    if alerts:
        first = _first_report(new, alerts, session=session, composer=composer)
        new = _completed(new, first, counter.last_iid, composer)
    row = _row(project.id, counter.last_iid, new, by=by, now=now)
    _store(row, alerts, by=by, session=session, now=now)
    return row


def _first_report(
    new: NewIncident, alerts: Sequence[LinkedAlert], *, session: Session, composer: Composer
) -> AlertReport:
    """Return the report of the first given alert, from which the incident is composed."""
    first = next(alert.id for alert in alerts if alert.iid == new.alerts[0])
    return read_reports([first], session=session, reading=composer.reading)[first]


def _store(
    row: Incident,
    alerts: Sequence[LinkedAlert],
    *,
    by: Actor | None,
    session: Session,
    now: datetime,
) -> None:
    row.alerts = len(alerts)
    session.add(row)
    session.flush()  # Assigns the ID.
    if alerts:
        link({row.id: alerts}, session=session)
        hold({row.id: alerts}, row.project_id, session=session)
    details = alerts_in([alert.iid for alert in alerts])
    entry = NewEntry(incident_id=row.id, kind=EntryKind.OPENED, details=details)
    add_entries([entry], by=by, session=session, now=now)


def _completed(new: NewIncident, report: AlertReport, iid: int, composer: Composer) -> NewIncident:
    """Return the incident with omitted fields set from an alert."""
    description = new.description
    if description is None:
        description = composed_description(report, composer.alert_url(report.iid))
    composed = {
        "title": composed_title(report, iid) if new.title is None else new.title,
        "description": description,
        "severity": new.severity or report.severity,
    }
    return new.model_copy(update=composed)


def _row(
    project_id: int, iid: int, new: NewIncident, *, by: Actor | None, now: datetime
) -> Incident:
    if new.title is None:
        message = "The incident has no title. Specify a title, or alerts to derive it from."
        raise InvalidError(message, field="title")
    return Incident(
        project_id=project_id,
        iid=iid,
        title=checked_title(new.title),
        description=checked_description(new.description or ""),
        urgency=urgency_of(new.severity or Severity.UNKNOWN),
        status=IncidentStatus.TRIGGERED.value,
        closes_when_resolved=bool(new.close_when_resolved),
        quiets_alerts=bool(new.quiet_alerts),
        author_id=by.id if by else None,
        author_name=by.name if by else "",
        created_at=now,
        updated_at=now,
    )


def open_by_rules(
    project_id: int,
    openings: Sequence[Opening],
    *,
    session: Session,
    now: datetime,
    composer: Composer,
) -> list[Incident]:
    """Store the incidents that rules open, with a fixed number of statements.

    The caller has locked the incidents of the project.
    """
    if not openings:
        return []
    counter = lock_incidents(project_id, session=session)
    firsts = [opening.alerts[0].id for opening in openings]
    reports = read_reports(firsts, session=session, reading=composer.reading)
    rows = [
        _row_of_rule(project_id, iid, opening, reports[opening.alerts[0].id], composer, now)
        for iid, opening in enumerate(openings, counter.last_iid + 1)
    ]
    counter.last_iid += len(openings)
    session.add_all(rows)
    session.flush()  # Assigns the IDs.
    links: dict[int, Sequence[LinkedAlert]] = {
        row.id: opening.alerts for row, opening in zip(rows, openings, strict=True)
    }
    link(links, session=session)
    hold(links, project_id, session=session)
    add_entries(
        [
            NewEntry(
                incident_id=row.id,
                kind=EntryKind.OPENED,
                details={
                    "rule": opening.rule.name,
                    **alerts_in([alert.iid for alert in opening.alerts]),
                },
            )
            for row, opening in zip(rows, openings, strict=True)
        ],
        by=None,
        session=session,
        now=now,
    )
    return rows


def _row_of_rule(
    project_id: int,
    iid: int,
    opening: Opening,
    report: AlertReport,
    composer: Composer,
    now: datetime,
) -> Incident:
    rule = opening.rule
    new = NewIncident(
        close_when_resolved=rule.closes_when_resolved, quiet_alerts=rule.quiets_alerts
    )
    row = _row(project_id, iid, _completed(new, report, iid, composer), by=None, now=now)
    row.urgency, row.rule_id = opening.urgency, rule.id
    row.alerts = len(opening.alerts)
    return row
