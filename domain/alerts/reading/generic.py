"""Reads the generic JSON payload: an object is one alert, an array has one alert per object.

Every field is optional, and unknown fields are allowed. Each field is read from the key of its own
name, unless the integration has a mapping to other keys.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from domain.alerts.reading import fingerprint
from domain.alerts.reading.incoming import (
    AlertState,
    IncomingAlert,
    NoValidItem,
    ParsedBody,
    RefusedItem,
)
from domain.alerts.reading.mapping import UNMAPPED, AlertField, FieldMapping
from domain.alerts.reading.severity import GENERIC_WORDS, read_severity
from domain.alerts.reading.text import (
    excerpt,
    first_text,
    is_blank,
    short_text,
    texts_within,
    whole_text,
)
from domain.alerts.reading.times import AlertEnd, in_order, read_end, read_start

DEFAULT_TITLE = "New: Alert"

#: Senders in the field use the second spelling.
_ENVIRONMENT = ("platform_environment_name", "gitlab_environment_name")

_UNGROUPED = "none: grouping is off"


def _read_environment(fields: Mapping[str, object], mapping: FieldMapping) -> str | None:
    names = _ENVIRONMENT[:1] if AlertField.ENVIRONMENT in mapping.paths else _ENVIRONMENT
    return first_text(map(fields.get, names), 255)


def _identify(
    body: Mapping[str, object], given: object, mapping: FieldMapping, *, automatic_fingerprint: bool
) -> tuple[bytes | None, str, str | None]:
    """Return the fingerprint, its source, and a warning if the sender's own one is unusable."""
    name = mapping.sources[AlertField.FINGERPRINT]
    if fingerprint.is_fingerprint(given):
        return fingerprint.of_value(given), f"the {name} field", None
    warning = None
    if not is_blank(given):
        warning = f"{name} is not a string, number or array: {excerpt(given)}, so it is not used."
    if not automatic_fingerprint:
        return None, _UNGROUPED, warning
    made_of = f"the whole payload without {mapping.volatile}"
    return fingerprint.of_payload(mapping.stable_part(body)), made_of, warning


def _read_end(
    body: Mapping[str, object],
    fields: Mapping[str, object],
    mapping: FieldMapping,
    *,
    now: datetime,
) -> AlertEnd:
    """Return the end of an alert: rules decide whether it has one, if the mapping has rules."""
    end = read_end(fields.get(AlertField.END_TIME), name=mapping.sources[AlertField.END_TIME])
    if not mapping.rules.resolved_when:
        return end
    if not mapping.rules.is_over(body):
        return AlertEnd(None, None)
    return AlertEnd(end.time or now, end.warning)


def _read_alert(
    body: Mapping[str, object], mapping: FieldMapping, *, now: datetime, automatic_fingerprint: bool
) -> IncomingAlert:
    fields, sources = mapping.fields(body), mapping.sources
    severity = read_severity(
        fields.get(AlertField.SEVERITY), GENERIC_WORDS, mapping.rules.severity_words
    )
    start = read_start(
        fields.get(AlertField.START_TIME), name=sources[AlertField.START_TIME], now=now
    )
    end = _read_end(body, fields, mapping, now=now)
    started_at, end = in_order(start, end)
    title = short_text(fields.get(AlertField.TITLE), 200)
    identity, made_of, warning = _identify(
        *(body, fields.get(AlertField.FINGERPRINT), mapping),
        automatic_fingerprint=automatic_fingerprint,
    )
    left_out = {
        "title": title is None,
        "severity": is_blank(fields.get(AlertField.SEVERITY)),
        "started_at": not start.is_given,
    }
    return IncomingAlert(
        title=title or DEFAULT_TITLE,
        description=short_text(fields.get(AlertField.DESCRIPTION), 1000),
        severity=severity.severity,
        state=AlertState.FIRING if end.time is None else AlertState.RECOVERY,
        started_at=started_at,
        ended_at=end.time,
        service=short_text(fields.get(AlertField.SERVICE), 100),
        monitoring_tool=short_text(fields.get(AlertField.MONITORING_TOOL), 100),
        hosts=texts_within(fields.get(AlertField.HOSTS), 255),
        environment=_read_environment(fields, mapping),
        fingerprint=identity,
        fingerprint_source=made_of,
        severity_reason=severity.reason,
        runbook=whole_text(fields.get(AlertField.RUNBOOK)),
        query=None,
        markdown=None,
        y_label=None,
        generator_url=None,
        parse_warnings=tuple(filter(None, (start.warning, end.warning, warning, severity.warning))),
        item_index=0,
        left_out=frozenset(name for name, is_so in left_out.items() if is_so),
    )


def parse(
    body: Mapping[str, object],
    *,
    now: datetime,
    automatic_fingerprint: bool,
    mapping: FieldMapping = UNMAPPED,
) -> ParsedBody:
    """Read a generic payload as one alert; any object is accepted.

    A readable end time resolves the alert, even if it lies in the future. Without a usable
    fingerprint the payload itself identifies the alert, unless `automatic_fingerprint` is off: then
    the alert has no fingerprint. What a rule of the mapping drops is no alert.
    """
    if mapping.rules.is_dropped(body):
        return ParsedBody(alerts=(), refused=(), truncated_alerts=0, parse_warnings=(), dropped=1)
    alert = _read_alert(body, mapping, now=now, automatic_fingerprint=automatic_fingerprint)
    return ParsedBody(alerts=(alert,), refused=(), truncated_alerts=0, parse_warnings=())


def parse_each(
    items: Sequence[object],
    *,
    now: datetime,
    automatic_fingerprint: bool,
    mapping: FieldMapping = UNMAPPED,
) -> ParsedBody:
    """Read one alert for each object of an array; other items are refused one by one.

    Raise NoValidItem if the array has no object.
    """
    alerts, refused, dropped = [], [], 0
    for index, item in enumerate(items):
        if isinstance(item, dict) and mapping.rules.is_dropped(item):
            dropped += 1
        elif isinstance(item, dict):
            alert = _read_alert(item, mapping, now=now, automatic_fingerprint=automatic_fingerprint)
            alerts.append(replace(alert, item_index=index))
        else:
            refused.append(RefusedItem(item_index=index, reason="it is not an object"))
    if not alerts and not dropped:
        message = "None of the items is an alert." if refused else "The array is empty."
        raise NoValidItem(message, refused=refused)
    return ParsedBody(
        alerts=tuple(alerts),
        refused=tuple(refused),
        truncated_alerts=0,
        parse_warnings=(),
        dropped=dropped,
    )
