"""What a message says of an alert beyond its columns: links, labels, and the first fields."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from domain.alerts.formats.base import Reading
from domain.alerts.handling.alert_detail import StoredReport, mapping_of, other_links, read_report
from domain.alerts.matching.labels import labels_of
from domain.alerts.reading.incoming import DEFAULT_TITLE
from domain.alerts.reading.mapping import AlertField
from domain.alerts.reading.payload_fields import flatten
from domain.alerts.reading.report_links import RUNBOOK, SOURCE
from domain.text_links import is_web_url
from models import Alert, Delivery

_MOST_LABELS = 6
_MOST_FIELDS = 3
#: A runbook may be a sentence. A URL is not cut.
_LONGEST_LINK = 1_000
_LONGEST_VALUE = 100
#: What columns show, by the names that senders have for it, and what is about the report itself.
_SHOWN = frozenset(
    {
        *(each.value for each in AlertField),
        *("alertname", "title", "summary", "description", "message", "status", "environment"),
        *("gitlab_environment_name", "host", "instance", "dedup_key", "fingerprint"),
    }
)
_NOTHING = frozenset({"", "null", "{}", "[]"})


@dataclass(frozen=True, kw_only=True)
class AlertFacts:
    """What the stored report of an alert says; empty once the payload was removed."""

    #: By what they lead to; a runbook may be a sentence.
    links: Mapping[str, str]
    #: The first ones that no column shows.
    labels: Sequence[tuple[str, str]]


def read_facts(alert: Alert, *, session: Session, reading: Reading) -> AlertFacts:
    """Return the links and labels of an alert."""
    report = _report_of(alert, session=session, reading=reading)
    labels = labels_of([alert.id], session=session, reading=reading)[alert.id].labels
    shown = {alert.title, alert.description, alert.service, alert.environment, alert.hosts}
    shown |= {alert.monitoring_tool}
    return AlertFacts(
        links=dict(_links(report)),
        labels=[
            (name, value)
            for name, value in labels.items()
            if name not in _SHOWN and value not in shown and _is_short(value)
        ][:_MOST_LABELS],
    )


def _links(report: StoredReport) -> Iterator[tuple[str, str]]:
    item = report.item
    if item and item.runbook:
        yield RUNBOOK, item.runbook
    yield from other_links(report).items()
    if item and is_web_url(item.generator_url) and len(item.generator_url or "") <= _LONGEST_LINK:
        yield SOURCE, item.generator_url or ""


def first_fields(
    alerts: Collection[Alert], *, session: Session, reading: Reading
) -> Mapping[int, Sequence[tuple[str, str]]]:
    """Return the first fields of the reports of those alerts that have no title, by alert."""
    untitled = [alert for alert in alerts if alert.title == DEFAULT_TITLE]
    return {
        alert.id: _first_fields(_report_of(alert, session=session, reading=reading))
        for alert in untitled
    }


def _first_fields(report: StoredReport) -> Sequence[tuple[str, str]]:
    return [
        (name, value)
        for name, value in flatten(report.part or {})
        if value.strip() not in _NOTHING and _is_short(value)
    ][:_MOST_FIELDS]


def _is_short(value: str) -> bool:
    return len(value) <= _LONGEST_VALUE and not is_web_url(value)


def _report_of(alert: Alert, *, session: Session, reading: Reading) -> StoredReport:
    delivery = session.get(Delivery, alert.delivery_id) if alert.delivery_id else None
    mapping = mapping_of(alert, delivery, session=session)
    return read_report(delivery, alert.item_index, mapping, reading=reading)
