"""Reads one alert with all its fields, including fields that only the stored payload contains.

To explain the grouping, the stored fingerprint is compared with the fingerprint that each rule
computes from the payload. The explanation stays correct even if the mapping or a setting has
changed in the meantime.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, or_, select
from sqlalchemy.orm import Session

from domain.alerts.formats.base import Format, Reading
from domain.alerts.formats.registry import format_named
from domain.alerts.listing.queries import ROWS, AlertRow, row_of
from domain.alerts.matching.labels import labels_of
from domain.alerts.reading.fingerprint import within_monitor
from domain.alerts.reading.incoming import (
    DEFAULT_TITLE,
    IncomingAlert,
    MissingAttributes,
    NoValidItem,
    UnreadableBody,
)
from domain.alerts.reading.mapping import AlertField, FieldMapping, stored_mapping
from domain.alerts.reading.payload_fields import flatten, pretty
from domain.alerts.reading.text import pretty_json, storable
from domain.core.errors import NotFoundError
from domain.core.text_links import is_web_url
from models import Alert, AlertReporter, Delivery, Integration

Fields = tuple[tuple[str, str], ...]
_MOST_LABELS = 6
_MOST_FIELDS = 3
#: Maximum length of a link. Longer URLs are omitted, since they cannot be shortened.
_LONGEST_LINK = 1_000
_LONGEST_VALUE = 100
_NOTHING = frozenset({"", "null", "{}", "[]"})
#: Names of the first and the last link.
RUNBOOK, SOURCE = "Runbook", "Source"
#: Keys that contain each link, in order of preference. Grafana sends dashboardURL and panelURL.
_NAMES = {
    RUNBOOK: ("runbook_url", "runbook", "playbook"),
    "Dashboard": ("dashboard", "dashboardURL", "dashboard_url", "dashboardUrl"),
    "Panel": ("panelURL", "panel_url"),
    SOURCE: ("generatorURL", "generatorUrl", "generator_url", "client_url", "url", "link"),
}
#: Objects within a report that can contain the same keys.
_WITHIN = ("annotations", "labels", "payload", "custom_details", "details")


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """The rule that computed the fingerprint, as a sentence, and the fields that it used."""

    sentence: str
    fields: Fields = ()

    @property
    def short(self) -> str:
        """The sentence without its ending, for use within another sentence."""
        text = self.sentence.removesuffix(".").removesuffix(" are grouped into one alert")
        return text[:1].lower() + text[1:]


NEVER = Grouping(sentence="This alert is not grouped: it has no fingerprint.")
FORGOTTEN = Grouping(
    sentence="The origin of the fingerprint is unknown, because the payload that opened the alert "
    "is no longer stored, or the integration has been changed."
)


def explain(
    stored: bytes | None,
    part: Mapping[str, object],
    item: IncomingAlert | None,
    *,
    body_format: Format | None,
    mapping: FieldMapping,
) -> Grouping:
    """Return the rule that computed the stored fingerprint from `part`, the item of the payload."""
    if stored is None:
        return NEVER
    if item is None or body_format is None:
        return FORGOTTEN
    for rule in body_format.grouping_rules(part, item, mapping):
        if rule.fingerprint == stored:
            return Grouping(sentence=rule.sentence, fields=flatten(rule.fields))
    return FORGOTTEN


@dataclass(frozen=True, kw_only=True)
class AlertDetail(AlertRow):
    """An alert with all its fields. Fields from the payload are None if it is no longer stored."""

    description: str | None
    runbook: str | None
    query: str | None
    markdown: str | None
    y_label: str | None
    generator_url: str | None
    #: Other links of the report, by their names.
    links: Mapping[str, str]
    #: Names and values of the first labels that no column shows.
    labels: Sequence[tuple[str, str]]
    payload_fields: Fields
    payload: str
    #: True if `payload` is one item of a larger body.
    is_item: bool
    #: Phrase that describes how the payload was read. It follows the name of the integration.
    read_by: str
    grouping: Grouping
    severity_reason: str
    received_at: datetime | None
    integration_id: int | None
    #: Integrations that have reported the alert. The alert's own integration comes first.
    integrations: tuple["ReportingIntegration", ...]


@dataclass(frozen=True, kw_only=True)
class ReportingIntegration:
    """An integration that has reported an alert."""

    id: int
    name: str


@dataclass(frozen=True, kw_only=True)
class StoredReport:
    """The item of a delivery that an alert shows, both parsed and as received."""

    item: IncomingAlert | None = None
    part: Mapping[str, object] | None = None
    #: The body reduced to the item, or None if the body contains no other items.
    payload: Mapping[str, object] | None = None


def get_alert(project_id: int, iid: int, *, session: Session, reading: Reading) -> AlertDetail:
    """Return an alert with all its fields.

    Raise NotFoundError if the project has no such alert.
    """
    found = session.execute(ROWS.where(Alert.project_id == project_id, Alert.iid == iid)).first()
    if found is None:
        raise _not_found(iid)
    alert: Alert = found[0]
    delivery = session.get(Delivery, alert.delivery_id) if alert.delivery_id else None
    mapping = mapping_of(alert, delivery, session=session)
    labels = _first_labels(alert, session=session, reading=reading)
    detail = _detail(found, delivery, mapping, labels, reading=reading)
    return replace(detail, integrations=_integrations_of(alert, session=session))


def _integrations_of(alert: Alert, *, session: Session) -> tuple[ReportingIntegration, ...]:
    others = select(AlertReporter.integration_id).where(AlertReporter.alert_id == alert.id)
    rows = session.execute(
        select(Integration.id, Integration.name)
        .where(or_(Integration.id == alert.integration_id, Integration.id.in_(others)))
        .order_by(Integration.id)
    )
    found = [ReportingIntegration(id=row.id, name=row.name) for row in rows]
    return tuple(sorted(found, key=lambda each: each.id != alert.integration_id))


def get_alert_id(project_id: int, iid: int, *, session: Session) -> int:
    """Return the ID of an alert's row.

    Raise NotFoundError if the project has no such alert.
    """
    found = session.scalar(select(Alert.id).where(Alert.project_id == project_id, Alert.iid == iid))
    if found is None:
        raise _not_found(iid)
    return found


def get_payload(project_id: int, iid: int, *, session: Session) -> bytes:
    """Return the body of the delivery that an alert shows, as it was received.

    Raise NotFoundError if the alert does not exist or its payload is no longer stored.
    """
    found = session.execute(
        select(Alert.id, Delivery.body)
        .outerjoin(Delivery, Delivery.id == Alert.delivery_id)
        .where(Alert.project_id == project_id, Alert.iid == iid)
    ).first()
    if found is None:
        raise _not_found(iid)
    if found.body is None:
        raise NotFoundError(f"The payload of alert {iid} is no longer stored.")
    body: bytes = found.body
    return body


def _not_found(iid: int) -> NotFoundError:
    return NotFoundError(f"Alert {iid} not found in this project.")


def mapping_of(alert: Alert, delivery: Delivery | None, *, session: Session) -> FieldMapping:
    """Return the mapping that the delivery was parsed with, or else the current mapping."""
    if delivery is not None and delivery.mapping is not None:
        return stored_mapping(delivery.mapping)
    stored = (
        session.get_one(Integration, alert.integration_id).mapping if alert.integration_id else None
    )
    return stored_mapping(stored)


def _detail(
    found: Row[*tuple[Any, ...]],
    delivery: Delivery | None,
    mapping: FieldMapping,
    labels: Sequence[tuple[str, str]],
    *,
    reading: Reading,
) -> AlertDetail:
    alert: Alert = found[0]
    report = read_report(delivery, alert.item_index, mapping, reading=reading)
    item, part = report.item, report.part or {}
    whole = pretty(delivery.body) if delivery and delivery.body else ""
    return AlertDetail(
        **vars(row_of(found)),
        description=alert.description,
        runbook=item.runbook if item else None,
        query=_stored_or_read(alert.query, item.query if item else None),
        markdown=item.markdown if item else None,
        y_label=item.y_label if item else None,
        generator_url=item.generator_url if item else None,
        links=other_links(report),
        labels=labels,
        payload_fields=flatten(part),
        payload=pretty_json(report.payload) if report.payload is not None else whole,
        is_item=report.payload is not None,
        read_by=_read_by(delivery, mapping),
        grouping=explain(
            alert.fingerprint and within_monitor(alert.fingerprint, alert.monitor_id),
            part,
            item,
            body_format=format_named(delivery.format) if delivery else None,
            mapping=mapping,
        ),
        severity_reason=_stored_or_read(
            alert.severity_reason, item.severity_reason if item else None
        )
        or "",
        received_at=delivery.received_at if delivery else None,
        integration_id=alert.integration_id,
        integrations=(),
    )


def other_links(report: StoredReport) -> Mapping[str, str]:
    """Return the links of a report by name, without its runbook and its source."""
    item = report.item
    known = {RUNBOOK: item.runbook, SOURCE: item.generator_url} if item else {}
    found = _report_links(report.part or {})
    return {
        what: url
        for what, url in found.items()
        if not known.get(what) and url not in known.values()
    }


def _report_links(report: Mapping[str, object]) -> Mapping[str, str]:
    """Return the absolute http and https URLs in a report, by the names of the links."""
    within = list(_within(report))
    places = [report, *within, *(each for inner in within for each in _within(inner))]
    found = {what: _first(places, names) for what, names in _NAMES.items()}
    return {what: url for what, url in found.items() if url is not None}


def _within(place: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for name in _WITHIN:
        inner = place.get(name)
        if isinstance(inner, dict):
            yield inner


def _first(places: Sequence[Mapping[str, object]], names: Sequence[str]) -> str | None:
    for name in names:
        for place in places:
            value = place.get(name)
            if isinstance(value, str) and len(value) <= _LONGEST_LINK and is_web_url(value):
                return storable(value)
    return None


def _read_by(delivery: Delivery | None, mapping: FieldMapping) -> str:
    if delivery is None or delivery.integration_id is None:
        return ""
    return format_named(delivery.format).read_by(mapping)


def _stored_or_read(stored: str | None, read: str | None) -> str | None:
    """Return the stored text, or the text in the payload if the alert is older than the column."""
    return read if stored is None else stored or None


def read_report(
    delivery: Delivery | None, item_index: int, mapping: FieldMapping, *, reading: Reading
) -> StoredReport:
    """Parse the item from the stored body, since fields of the payload are not stored elsewhere."""
    if delivery is None or delivery.body is None:
        return StoredReport()
    body_format = format_named(delivery.format)
    try:
        body = body_format.decode(delivery.body, reading=reading)
        payload = body_format.only_item(body, item_index)
        parsed = body_format.parse(
            payload, now=delivery.received_at, reading=reading, mapping=mapping
        )
    except (UnreadableBody, MissingAttributes, NoValidItem):
        return StoredReport()
    item = next(iter(parsed.alerts), None)
    return StoredReport(
        item=item,
        part=body_format.shown_part(payload),
        payload=payload if len(body_format.items_of(body)) > 1 else None,
    )


#: Names of labels that are not listed, since columns show their values or they describe the report
#: itself.
_SHOWN = frozenset(
    {
        *(each.value for each in AlertField),
        *("alertname", "title", "summary", "description", "message", "status", "environment"),
        *("gitlab_environment_name", "host", "instance", "dedup_key", "fingerprint"),
    }
)


@dataclass(frozen=True, kw_only=True)
class AlertFacts:
    """Links and labels from the stored report of an alert. Both are empty without a payload."""

    #: Links by their names. A runbook may also be a sentence.
    links: Mapping[str, str]
    #: Names and values of the first labels that no column shows.
    labels: Sequence[tuple[str, str]]


def read_facts(alert: Alert, *, session: Session, reading: Reading) -> AlertFacts:
    """Return the links and labels of an alert."""
    report = _report_of(alert, session=session, reading=reading)
    labels = _first_labels(alert, session=session, reading=reading)
    return AlertFacts(links=dict(_links(report)), labels=labels)


def _first_labels(alert: Alert, *, session: Session, reading: Reading) -> Sequence[tuple[str, str]]:
    labels = labels_of([alert.id], session=session, reading=reading)[alert.id].labels
    shown = {alert.title, alert.description, alert.service, alert.environment, alert.hosts}
    shown |= {alert.monitoring_tool}
    return [
        (name, value)
        for name, value in labels.items()
        if name not in _SHOWN and value not in shown and _is_short(value)
    ][:_MOST_LABELS]


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
    """Return the first fields of the reports of alerts without a title, by the ID of the alert."""
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
