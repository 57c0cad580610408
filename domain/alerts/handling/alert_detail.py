"""Reads one alert with all its fields, including fields that only the stored payload contains.

To explain the grouping, the stored fingerprint is compared with the fingerprint that each rule
computes from the payload. The explanation stays correct even if the mapping or a setting has
changed since the report.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, or_, select
from sqlalchemy.orm import Session

from domain.alerts.formats.base import AlertFormat, ParserSettings
from domain.alerts.formats.registry import get_format
from domain.alerts.listing.queries import ALERT_LIST_QUERY, AlertListRow, build_alert_list_row
from domain.alerts.matching.alert_labels import find_alert_labels
from domain.alerts.parsing.fingerprint import combine_with_monitor
from domain.alerts.parsing.incoming_alert import (
    DEFAULT_TITLE,
    IncomingAlert,
    MissingAttributesError,
    NoValidItemError,
    UnreadableBodyError,
)
from domain.alerts.parsing.mapping import AlertField, FieldMapping, load_mapping
from domain.alerts.parsing.payload_fields import flatten_payload, format_payload
from domain.alerts.parsing.text_conversion import (
    format_indented_json,
    replace_unstorable_characters,
)
from domain.core.errors import NotFoundError
from domain.core.text_links import is_web_url
from models import Alert, AlertReporter, Delivery, Integration

FieldValues = tuple[tuple[str, str], ...]
_MAX_LABELS = 6
_MAX_FIELDS = 3
#: Maximum length of a link. Longer URLs are omitted, since they cannot be shortened.
_MAX_LINK_LENGTH = 1_000
_MAX_VALUE_LENGTH = 100
_EMPTY_VALUES = frozenset({"", "null", "{}", "[]"})
#: Names of the first and the last link.
RUNBOOK, SOURCE = "Runbook", "Source"
#: Keys that contain each link, in order of preference. Grafana sends dashboardURL and panelURL.
_LINK_KEYS = {
    RUNBOOK: ("runbook_url", "runbook", "playbook"),
    "Dashboard": ("dashboard", "dashboardURL", "dashboard_url", "dashboardUrl"),
    "Panel": ("panelURL", "panel_url"),
    SOURCE: ("generatorURL", "generatorUrl", "generator_url", "client_url", "url", "link"),
}
#: Keys of objects within a report that can also contain links.
_NESTED_OBJECT_KEYS = ("annotations", "labels", "payload", "custom_details", "details")


@dataclass(frozen=True, kw_only=True)
class GroupingExplanation:
    """The rule that computed the fingerprint, as a sentence, and the fields that it used."""

    sentence: str
    fields: FieldValues = ()

    @property
    def short_sentence(self) -> str:
        """The sentence without its ending, for use within another sentence."""
        text = self.sentence.removesuffix(".").removesuffix(" are grouped into one alert")
        return text[:1].lower() + text[1:]


NOT_GROUPED = GroupingExplanation(sentence="This alert is not grouped: it has no fingerprint.")
UNKNOWN_GROUPING = GroupingExplanation(
    sentence="The origin of the fingerprint is unknown, because the payload that opened the alert "
    "is no longer stored, or the integration has been changed."
)


def explain_grouping(
    stored: bytes | None,
    part: Mapping[str, object],
    item: IncomingAlert | None,
    *,
    body_format: AlertFormat | None,
    mapping: FieldMapping,
) -> GroupingExplanation:
    """Explain which rule computed the stored fingerprint from `part`, an item of the payload."""
    if stored is None:
        return NOT_GROUPED
    if item is None or body_format is None:
        return UNKNOWN_GROUPING
    for rule in body_format.list_grouping_rules(part, item, mapping):
        if rule.fingerprint == stored:
            return GroupingExplanation(sentence=rule.sentence, fields=flatten_payload(rule.fields))
    return UNKNOWN_GROUPING


@dataclass(frozen=True, kw_only=True)
class AlertDetailView(AlertListRow):
    """An alert with all its fields. Fields from a payload that was deleted are None."""

    description: str | None
    runbook: str | None
    query: str | None
    markdown: str | None
    y_label: str | None
    generator_url: str | None
    #: Other links in the report, by name.
    links: Mapping[str, str]
    #: Names and values of the first labels that are not shown in a column.
    labels: Sequence[tuple[str, str]]
    payload_fields: FieldValues
    payload: str
    #: True if `payload` is one item of a larger body.
    is_item: bool
    #: Phrase that describes how the payload was read, shown after the name of the integration.
    read_by: str
    grouping: GroupingExplanation
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
    """The delivery item whose data an alert shows, both parsed and as received."""

    item: IncomingAlert | None = None
    part: Mapping[str, object] | None = None
    #: The body reduced to the item, or None if the body contains no other items.
    payload: Mapping[str, object] | None = None


def get_alert_detail(
    project_id: int, iid: int, *, session: Session, reading: ParserSettings
) -> AlertDetailView:
    """Return an alert with all its fields.

    Raise NotFoundError if the project has no such alert.
    """
    found = session.execute(
        ALERT_LIST_QUERY.where(Alert.project_id == project_id, Alert.iid == iid)
    ).first()
    if found is None:
        raise _build_not_found_error(iid)
    alert: Alert = found[0]
    delivery = session.get(Delivery, alert.delivery_id) if alert.delivery_id else None
    mapping = get_delivery_mapping(alert, delivery, session=session)
    labels = _find_first_labels(alert, session=session, reading=reading)
    detail = _build_alert_detail(found, delivery, mapping, labels, reading=reading)
    return replace(detail, integrations=_find_reporting_integrations(alert, session=session))


def _find_reporting_integrations(
    alert: Alert, *, session: Session
) -> tuple[ReportingIntegration, ...]:
    others = select(AlertReporter.integration_id).where(AlertReporter.alert_id == alert.id)
    rows = session.execute(
        select(Integration.id, Integration.name)
        .where(or_(Integration.id == alert.integration_id, Integration.id.in_(others)))
        .order_by(Integration.id)
    )
    found = [ReportingIntegration(id=row.id, name=row.name) for row in rows]
    return tuple(sorted(found, key=lambda each: each.id != alert.integration_id))


def get_alert_id(project_id: int, iid: int, *, session: Session) -> int:
    """Return the database ID of an alert.

    Raise NotFoundError if the project has no such alert.
    """
    found = session.scalar(select(Alert.id).where(Alert.project_id == project_id, Alert.iid == iid))
    if found is None:
        raise _build_not_found_error(iid)
    return found


def get_payload(project_id: int, iid: int, *, session: Session) -> bytes:
    """Return the body of the delivery whose data an alert shows, as it was received.

    Raise NotFoundError if the alert does not exist or its payload is no longer stored.
    """
    found = session.execute(
        select(Alert.id, Delivery.body)
        .outerjoin(Delivery, Delivery.id == Alert.delivery_id)
        .where(Alert.project_id == project_id, Alert.iid == iid)
    ).first()
    if found is None:
        raise _build_not_found_error(iid)
    if found.body is None:
        raise NotFoundError(f"The payload of alert {iid} is no longer stored.")
    body: bytes = found.body
    return body


def _build_not_found_error(iid: int) -> NotFoundError:
    return NotFoundError(f"Alert {iid} not found in this project.")


def get_delivery_mapping(
    alert: Alert, delivery: Delivery | None, *, session: Session
) -> FieldMapping:
    """Return the mapping that a delivery was parsed with, or the integration's current mapping.

    The current mapping is returned if no mapping is stored with the delivery.
    """
    if delivery is not None and delivery.mapping is not None:
        return load_mapping(delivery.mapping)
    stored = (
        session.get_one(Integration, alert.integration_id).mapping if alert.integration_id else None
    )
    return load_mapping(stored)


def _build_alert_detail(
    found: Row[*tuple[Any, ...]],
    delivery: Delivery | None,
    mapping: FieldMapping,
    labels: Sequence[tuple[str, str]],
    *,
    reading: ParserSettings,
) -> AlertDetailView:
    alert: Alert = found[0]
    report = parse_stored_report(delivery, alert.item_index, mapping, reading=reading)
    item, part = report.item, report.part or {}
    whole = format_payload(delivery.body) if delivery and delivery.body else ""
    return AlertDetailView(
        **vars(build_alert_list_row(found)),
        description=alert.description,
        runbook=item.runbook if item else None,
        query=_choose_stored_or_parsed(alert.query, item.query if item else None),
        markdown=item.markdown if item else None,
        y_label=item.y_label if item else None,
        generator_url=item.generator_url if item else None,
        links=find_other_links(report),
        labels=labels,
        payload_fields=flatten_payload(part),
        payload=format_indented_json(report.payload) if report.payload is not None else whole,
        is_item=report.payload is not None,
        read_by=_describe_parsing(delivery, mapping),
        grouping=explain_grouping(
            alert.fingerprint and combine_with_monitor(alert.fingerprint, alert.monitor_id),
            part,
            item,
            body_format=get_format(delivery.format) if delivery else None,
            mapping=mapping,
        ),
        severity_reason=_choose_stored_or_parsed(
            alert.severity_reason, item.severity_reason if item else None
        )
        or "",
        received_at=delivery.received_at if delivery else None,
        integration_id=alert.integration_id,
        integrations=(),
    )


def find_other_links(report: StoredReport) -> Mapping[str, str]:
    """Return the links in a report by name, except the runbook and the source."""
    item = report.item
    known = {RUNBOOK: item.runbook, SOURCE: item.generator_url} if item else {}
    found = _find_report_links(report.part or {})
    return {
        what: url
        for what, url in found.items()
        if not known.get(what) and url not in known.values()
    }


def _find_report_links(report: Mapping[str, object]) -> Mapping[str, str]:
    """Return the absolute http and https URLs in a report, by link name."""
    within = list(_list_nested_objects(report))
    places = [report, *within, *(each for inner in within for each in _list_nested_objects(inner))]
    found = {what: _find_first_url(places, names) for what, names in _LINK_KEYS.items()}
    return {what: url for what, url in found.items() if url is not None}


def _list_nested_objects(place: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for name in _NESTED_OBJECT_KEYS:
        inner = place.get(name)
        if isinstance(inner, dict):
            yield inner


def _find_first_url(places: Sequence[Mapping[str, object]], names: Sequence[str]) -> str | None:
    for name in names:
        for place in places:
            value = place.get(name)
            if isinstance(value, str) and len(value) <= _MAX_LINK_LENGTH and is_web_url(value):
                return replace_unstorable_characters(value)
    return None


def _describe_parsing(delivery: Delivery | None, mapping: FieldMapping) -> str:
    if delivery is None or delivery.integration_id is None:
        return ""
    return get_format(delivery.format).describe_parsing(mapping)


def _choose_stored_or_parsed(stored: str | None, read: str | None) -> str | None:
    """Return the stored text, or the text in the payload.

    The payload is used for alerts that were stored before the column existed.
    """
    return read if stored is None else stored or None


def parse_stored_report(
    delivery: Delivery | None, item_index: int, mapping: FieldMapping, *, reading: ParserSettings
) -> StoredReport:
    """Parse an alert's item in the stored body of its delivery."""
    if delivery is None or delivery.body is None:
        return StoredReport()
    body_format = get_format(delivery.format)
    try:
        body = body_format.decode(delivery.body, reading=reading)
        payload = body_format.reduce_body_to_item(body, item_index, mapping)
        parsed = body_format.parse(
            payload, now=delivery.received_at, reading=reading, mapping=mapping
        )
    except (UnreadableBodyError, MissingAttributesError, NoValidItemError):
        return StoredReport()
    item = next(iter(parsed.alerts), None)
    return StoredReport(
        item=item,
        part=body_format.get_displayed_payload(payload),
        payload=None if body in (payload, [payload]) else payload,
    )


#: Names of labels that are not listed, because columns show their values or because they describe
#: the report itself.
_UNLISTED_LABELS = frozenset(
    {
        *(each.value for each in AlertField),
        *("alertname", "title", "summary", "description", "message", "status", "environment"),
        *("gitlab_environment_name", "host", "instance", "dedup_key", "fingerprint"),
    }
)


@dataclass(frozen=True, kw_only=True)
class AlertLinksAndLabels:
    """Links and labels in the stored report of an alert. Both are empty if no report is stored."""

    #: Links by name. A runbook may be plain text instead of a URL.
    links: Mapping[str, str]
    #: Names and values of the first labels that are not shown in a column.
    labels: Sequence[tuple[str, str]]


def find_links_and_labels(
    alert: Alert, *, session: Session, reading: ParserSettings
) -> AlertLinksAndLabels:
    """Return the links and labels in an alert's stored report.

    Both are empty if no report is stored.
    """
    report = _load_report(alert, session=session, reading=reading)
    labels = _find_first_labels(alert, session=session, reading=reading)
    return AlertLinksAndLabels(links=dict(_list_links(report)), labels=labels)


def _find_first_labels(
    alert: Alert, *, session: Session, reading: ParserSettings
) -> Sequence[tuple[str, str]]:
    labels = find_alert_labels([alert.id], session=session, reading=reading)[alert.id].labels
    shown = {alert.title, alert.description, alert.service, alert.environment, alert.hosts}
    shown |= {alert.monitoring_tool}
    return [
        (name, value)
        for name, value in labels.items()
        if name not in _UNLISTED_LABELS and value not in shown and _is_short_value(value)
    ][:_MAX_LABELS]


def _list_links(report: StoredReport) -> Iterator[tuple[str, str]]:
    item = report.item
    if item and item.runbook:
        yield RUNBOOK, item.runbook
    yield from find_other_links(report).items()
    if (
        item
        and is_web_url(item.generator_url)
        and len(item.generator_url or "") <= _MAX_LINK_LENGTH
    ):
        yield SOURCE, item.generator_url or ""


def find_first_fields(
    alerts: Collection[Alert], *, session: Session, reading: ParserSettings
) -> Mapping[int, Sequence[tuple[str, str]]]:
    """Return the first fields in the report of each alert without a title, by alert ID."""
    untitled = [alert for alert in alerts if alert.title == DEFAULT_TITLE]
    return {
        alert.id: _select_first_fields(_load_report(alert, session=session, reading=reading))
        for alert in untitled
    }


def _select_first_fields(report: StoredReport) -> Sequence[tuple[str, str]]:
    return [
        (name, value)
        for name, value in flatten_payload(report.part or {})
        if value.strip() not in _EMPTY_VALUES and _is_short_value(value)
    ][:_MAX_FIELDS]


def _is_short_value(value: str) -> bool:
    return len(value) <= _MAX_VALUE_LENGTH and not is_web_url(value)


def _load_report(alert: Alert, *, session: Session, reading: ParserSettings) -> StoredReport:
    delivery = session.get(Delivery, alert.delivery_id) if alert.delivery_id else None
    mapping = get_delivery_mapping(alert, delivery, session=session)
    return parse_stored_report(delivery, alert.item_index, mapping, reading=reading)
