"""Parser for generic JSON payloads.

An object is one alert, and an array contains several alerts. Every field is optional, and unknown
fields are allowed. Each field is read from the key with the same name, unless the integration maps
the field to other keys.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from domain.alerts.formats.base import (
    TIME_NOTATIONS,
    WRONG_FORMAT_PREFIX,
    AlertFormat,
    GroupingRule,
    Guide,
    ParserSettings,
)
from domain.alerts.formats.snippets import Snippet, build_http_snippets
from domain.alerts.parsing import fingerprint, pagerduty
from domain.alerts.parsing.incoming_alert import (
    DEFAULT_TITLE,
    AlertState,
    IncomingAlert,
    NoValidItemError,
    ParsedBody,
    RejectedAlertItem,
)
from domain.alerts.parsing.json_body import require_object
from domain.alerts.parsing.mapping import NO_FIELD_MAPPING, AlertField, FieldMapping
from domain.alerts.parsing.mapping_rules import normalize_word
from domain.alerts.parsing.payload_paths import find_value, set_value
from domain.alerts.parsing.severity import (
    GENERIC_SEVERITY_WORDS,
    ParsedSeverity,
    parse_cvss_score,
    parse_severity,
)
from domain.alerts.parsing.text_conversion import (
    UNLIMITED_LENGTH,
    convert_to_limited_lines,
    convert_to_short_text,
    find_first_text,
    format_excerpt,
    is_blank,
    split_title,
)
from domain.alerts.parsing.times import (
    AlertEnd,
    format_utc_time,
    order_start_and_end,
    parse_end_time,
    parse_start_time,
)
from domain.alerts.tools.base import MonitoringTool

#: Keys in every Alertmanager webhook. Other payloads rarely contain all of these keys.
_WEBHOOK_KEYS = frozenset({"alerts", "groupKey", "receiver"})
_WEBHOOK_WARNING = (
    f"{WRONG_FORMAT_PREFIX} a webhook from Prometheus Alertmanager or Grafana. Send it to an "
    "integration "
    "of the type “Prometheus Alertmanager”, which opens a separate alert for each of its alerts."
)
#: Keys of the items that Prometheus posts to an Alertmanager.
_PROMETHEUS_ITEM_KEYS = frozenset({"labels", "startsAt", "endsAt"})
_PROMETHEUS_WARNING = (
    f"{WRONG_FORMAT_PREFIX} alerts from Prometheus or vmalert. Send them to an integration of the "
    "type "
    "“Prometheus Alertmanager”, which recognizes them by their labels and resolves them."
)
#: Alternative key for the environment, which some senders use.
_ALTERNATIVE_ENVIRONMENT_KEY = "gitlab_environment_name"

#: Maximum age of a mapped start that can show that a report arrived late.
_MAX_START_AGE = timedelta(days=30)
#: Maximum number of alerts that a mapping reads from one object.
_MAX_PARTS = 1_000
_TOO_MANY_PARTS = f"an array within an object can contain at most {_MAX_PARTS:,} alerts"

_NO_FINGERPRINT_SOURCE = "none, because grouping is turned off"


def _identify_alert(
    body: Mapping[str, object], given: object, mapping: FieldMapping, *, automatic_fingerprint: bool
) -> tuple[bytes | None, str, str | None]:
    """Return the fingerprint, its source, and a warning if the sender's fingerprint is unusable."""
    name = mapping.sources[AlertField.FINGERPRINT]
    warning = None
    if not is_blank(given):
        if fingerprint.is_usable_fingerprint(given):
            made_of = f"the {name} field{'s' * (AlertField.FINGERPRINT in mapping.rules.joins)}"
            if mapping.rules.ignored_words:
                made_of += ", without the words that change"
            return fingerprint.compute_sender_fingerprint(given), made_of, None
        warning = (
            f"{name} is not a string, number or array: {format_excerpt(given)}, so it is ignored."
        )
    if not automatic_fingerprint:
        return None, _NO_FINGERPRINT_SOURCE, warning
    made_of = f"the whole payload without {mapping.volatile_sources}"
    return (
        fingerprint.compute_fingerprint("payload", mapping.extract_stable_part(body)),
        made_of,
        warning,
    )


def _parse_severity(
    body: Mapping[str, object], value: object, mapping: FieldMapping
) -> ParsedSeverity:
    """Return the severity for a word, or for a CVSS score under a key such as `cvssScore`."""
    words = mapping.rules.severity_words
    paths = mapping.paths.get(AlertField.SEVERITY, ())
    used = next((path for path in paths if not is_blank(find_value(body, path))), ("",))
    if "cvss" in str(used[-1]).casefold() and normalize_word(value) not in words:
        return parse_cvss_score(value) or parse_severity(value, GENERIC_SEVERITY_WORDS, words)
    return parse_severity(value, GENERIC_SEVERITY_WORDS, words)


def _parse_alert(
    body: Mapping[str, object],
    index: int,
    mapping: FieldMapping,
    *,
    now: datetime,
    automatic_fingerprint: bool,
) -> IncomingAlert:
    fields, sources = mapping.read_fields(body), mapping.sources
    severity = _parse_severity(body, fields.get(AlertField.SEVERITY), mapping)
    start = parse_start_time(
        fields.get(AlertField.START_TIME), name=sources[AlertField.START_TIME], now=now
    )
    end = parse_end_time(fields.get(AlertField.END_TIME), name=sources[AlertField.END_TIME])
    if mapping.rules.resolved_when:  # The rules determine whether the alert is resolved.
        is_over = mapping.rules.resolves_alert(body)
        end = AlertEnd(end.time or now, end.warning) if is_over else AlertEnd(None, None)
    started_at = start.time
    if end.time is not None:
        started_at, end = order_start_and_end(start, end)
    title, more = fields.get(AlertField.TITLE), None
    if isinstance(title, str) and "\n" in title:
        title, more = split_title(title)
    title = convert_to_short_text(title, 200)
    identity, made_of, warning = _identify_alert(
        *(body, fields.get(AlertField.FINGERPRINT), mapping),
        automatic_fingerprint=automatic_fingerprint,
    )
    environment = convert_to_short_text(fields.get(AlertField.ENVIRONMENT), 255)
    if environment is None and AlertField.ENVIRONMENT not in mapping.paths:
        environment = convert_to_short_text(fields.get(_ALTERNATIVE_ENVIRONMENT_KEY), 255)
    # A mapped start may be another time, such as the creation of a resource, and a start without an
    # offset may be hours too early. Otherwise, each new alert with such a start would seem to be a
    # late copy of the previous alert.
    is_old = AlertField.START_TIME in mapping.paths and now - start.time > _MAX_START_AGE
    left_out = {
        "title": title is None,
        "severity": is_blank(fields.get(AlertField.SEVERITY)),
        "started_at": is_old or not start.is_certain,
    }
    return IncomingAlert(
        title=title or DEFAULT_TITLE,
        description=find_first_text((fields.get(AlertField.DESCRIPTION), more), 1000),
        severity=severity.severity,
        state=AlertState.FIRING if end.time is None else AlertState.RECOVERY,
        started_at=started_at,
        ended_at=end.time,
        service=convert_to_short_text(fields.get(AlertField.SERVICE), 100),
        monitoring_tool=convert_to_short_text(fields.get(AlertField.MONITORING_TOOL), 100),
        hosts=convert_to_limited_lines(fields.get(AlertField.HOSTS), 255),
        environment=environment,
        fingerprint=identity,
        fingerprint_source=made_of,
        severity_reason=severity.reason,
        runbook=convert_to_short_text(fields.get(AlertField.RUNBOOK), UNLIMITED_LENGTH),
        query=None,
        markdown=None,
        y_label=None,
        generator_url=convert_to_short_text(fields.get(AlertField.SOURCE_URL), UNLIMITED_LENGTH),
        parse_warnings=tuple(filter(None, (start.warning, end.warning, warning, severity.warning))),
        item_index=index,
        left_out=frozenset(name for name, is_so in left_out.items() if is_so),
    )


def _list_alert_parts(
    items: Sequence[object], mapping: FieldMapping
) -> Iterator[tuple[int, object]]:
    """Yield the parts that become alerts, with their indexes.

    The first part of an item has the index of the item. Each further part has the index of the
    previous part plus the number of items. The index of a part modulo the number of items is
    therefore the index of its item.
    """
    for index, item in enumerate(items):
        parts = mapping.split_payload(item) if mapping.item_arrays else (item,)
        yield from zip(count(index, len(items)), parts)


def parse_items(
    items: Sequence[object],
    *,
    now: datetime,
    automatic_fingerprint: bool,
    mapping: FieldMapping = NO_FIELD_MAPPING,
) -> ParsedBody:
    """Parse one alert for each object in an array, or several if the mapping splits the object.

    Items that are not objects are rejected individually. Items that match a drop rule of the
    mapping do not become alerts. A valid end time resolves the alert, even if the time is in the
    future.

    If the sender's fingerprint is missing or unusable, the fingerprint is computed from the
    payload. It is None if `automatic_fingerprint` is False. Raise NoValidItemError if the array
    contains no object.
    """
    alerts, refused, dropped = [], [], 0
    for index, item in _list_alert_parts(items, mapping):
        if index >= len(items) * _MAX_PARTS:
            refused.append(RejectedAlertItem(item_index=index, reason=_TOO_MANY_PARTS))
        elif not isinstance(item, dict):
            refused.append(RejectedAlertItem(item_index=index, reason="it is not an object"))
        elif mapping.rules.dropped_when and mapping.rules.drops_payload(item):
            dropped += 1
        else:
            alert = _parse_alert(
                item, index, mapping, now=now, automatic_fingerprint=automatic_fingerprint
            )
            alerts.append(alert)
    if not alerts and not dropped:
        message = "None of the items is an alert." if refused else "The array is empty."
        raise NoValidItemError(message, refused=refused)
    return ParsedBody(
        alerts=tuple(alerts),
        refused=tuple(refused),
        truncated_alerts=0,
        parse_warnings=(),
        dropped=dropped,
    )


class GenericAlert(BaseModel):
    """A generic alert. All fields are optional, and additional fields are stored and shown."""

    model_config = ConfigDict(extra="allow")

    title: str = Field(
        default="New: Alert", description="Title of the alert. Lists show at most 200 characters."
    )
    description: str = ""
    start_time: str | int | float = Field(default="", description=f"Start time, {TIME_NOTATIONS}")
    end_time: str | int | float = Field(
        default="", description=f"End time, {TIME_NOTATIONS} An alert with an end time is resolved."
    )
    service: str = ""
    monitoring_tool: str = ""
    hosts: str | list[str] = ""
    severity: str = Field(
        default="critical",
        description="Severity of the alert: critical, high, medium, low, info or unknown.",
    )
    fingerprint: str | int | list[Any] = Field(
        default="",
        description="Fingerprint of the alert. Reports with the same fingerprint are grouped into "
        "one alert.",
    )
    platform_environment_name: str = ""
    runbook: str = ""
    source_url: str = Field(default="", description="URL of the alert in the monitoring tool.")


def _is_prometheus_item(item: object) -> bool:
    return isinstance(item, dict) and item.keys() >= _PROMETHEUS_ITEM_KEYS


def _add_warning(parsed: ParsedBody, warning: str) -> ParsedBody:
    return replace(parsed, parse_warnings=(*parsed.parse_warnings, warning))


class HttpEndpoint(AlertFormat):
    """Format for any JSON object, or an array of objects."""

    name = "http"
    label = "HTTP Endpoint"
    help = "HTTP Endpoint accepts any JSON object."
    has_mapping = True
    accepts_sns = True
    accepts_events = True
    body = GenericAlert | list[GenericAlert]
    guides = (
        Guide("uptime-kuma", "Uptime Kuma"),
        Guide("zabbix", "Zabbix"),
        Guide("sentry", "Sentry"),
        Guide("cloudwatch", "CloudWatch"),
        Guide("healthchecks", "Healthchecks"),
        Guide("nagios", "Nagios"),
        Guide("curl", "curl"),
    )

    def list_tools(self) -> Sequence[MonitoringTool]:
        """Return the known tools that send this format."""
        # Only processes that recognize messages load the declarations of the tools.
        from domain.alerts.tools.registry import HTTP_TOOLS  # noqa: PLC0415 - see above

        return HTTP_TOOLS

    def parse(
        self,
        value: object,
        *,
        now: datetime,
        reading: ParserSettings,
        mapping: FieldMapping = NO_FIELD_MAPPING,
    ) -> ParsedBody:
        """Parse one alert for each object.

        Without a mapping, events in the format of PagerDuty's Events API are recognized by their
        keys. Raise InvalidEventError if such an event is malformed. A body that looks like an
        Alertmanager webhook is parsed anyway, with a warning.
        """
        flag = reading.automatic_fingerprint
        if isinstance(value, list):
            parsed = parse_items(value, now=now, automatic_fingerprint=flag, mapping=mapping)
            is_misread = not mapping.reads_fields and any(map(_is_prometheus_item, value))
            return _add_warning(parsed, _PROMETHEUS_WARNING) if is_misread else parsed
        payload, reads_fields = require_object(value), mapping.reads_fields
        if not reads_fields and pagerduty.is_pagerduty_event(payload):
            return pagerduty.parse_pagerduty_event(payload, now=now, automatic_fingerprint=flag)
        parsed = parse_items([payload], now=now, automatic_fingerprint=flag, mapping=mapping)
        if not reads_fields and payload.keys() >= _WEBHOOK_KEYS:
            return _add_warning(parsed, _WEBHOOK_WARNING)
        return parsed

    def list_alert_parts(
        self, value: object, mapping: FieldMapping
    ) -> Iterable[tuple[int, object]]:
        """Return the parts of a body that become alerts, as split by the mapping."""
        return _list_alert_parts(self.list_body_items(value), mapping)

    def reduce_body_to_item(
        self, value: object, item_index: int, mapping: FieldMapping = NO_FIELD_MAPPING
    ) -> Mapping[str, object]:
        """Return the part with this index, or the whole item that the index refers to."""
        items = self.list_body_items(value)
        part = dict(self.list_alert_parts(value, mapping)).get(item_index)
        if isinstance(part, dict):
            return part
        return super().reduce_body_to_item(value, item_index % max(len(items), 1))

    def labels(self, value: object, item_index: int) -> Iterable[object]:
        """Return the object itself, or the members of a PagerDuty event that contain labels."""
        if isinstance(value, dict) and pagerduty.is_pagerduty_event(value):
            return (pagerduty.get_label_members(value),)
        return super().labels(value, item_index % max(len(self.list_body_items(value)), 1))

    def describe_parsing(self, mapping: FieldMapping) -> str:
        """Return a phrase that states whether the mapping was used."""
        return "read by its mapping" if mapping.reads_fields else "read by the default fields"

    def list_grouping_rules(
        self, part: Mapping[str, object], item: IncomingAlert, mapping: FieldMapping
    ) -> Iterator[GroupingRule]:
        """Yield rules for the event's key, the sender's fingerprint, and the remaining payload."""
        del item
        if pagerduty.is_pagerduty_event(part):
            key = pagerduty.get_dedup_key(part)
            sentence = "Events with the same dedup_key are grouped into one alert."
            yield GroupingRule(
                fingerprint.compute_sender_fingerprint(key), sentence, {"dedup_key": key}
            )
        given = mapping.read_fields(part).get(AlertField.FINGERPRINT)
        name = mapping.sources[AlertField.FINGERPRINT]
        if fingerprint.is_usable_fingerprint(given):
            sentence = f"Reports with the same {name} are grouped into one alert."
            names = mapping.list_sources(AlertField.FINGERPRINT)
            parts = given if len(names) > 1 and isinstance(given, list) else [given]
            fields = dict(zip(names, parts, strict=True))
            yield GroupingRule(fingerprint.compute_sender_fingerprint(given), sentence, fields)
        stable = mapping.extract_stable_part(part)
        sentence = (
            f"Reports that differ only in {mapping.volatile_sources} are grouped into one alert."
        )
        yield GroupingRule(fingerprint.compute_fingerprint("payload", stable), sentence, stable)

    def describe_misdirected_deliveries(self) -> str:
        """Return advice that names the correct integration type for misdirected webhooks."""
        return (
            "Send webhooks from Prometheus Alertmanager or Grafana to an integration of the type "
            "“Prometheus Alertmanager”, which opens an alert for each alert in the webhook"
        )

    def example(self, started: str) -> Mapping[str, Any]:
        """Return an alert with all standard fields and one additional field."""
        return {
            "title": "Disk almost full on web-1",
            "description": "/var has 2% left and will be full in about 40 minutes.",
            "start_time": started,
            "service": "web",
            "monitoring_tool": "test",
            "hosts": ["web-1"],
            "severity": "high",
            "fingerprint": "disk-web-1-var",
            "platform_environment_name": "production",
            "mount": {"path": "/var", "free_percent": 2},
        }

    def build_recovery(self, value: object, mapping: FieldMapping, *, now: datetime) -> object:
        """Return a copy of the body that resolves the body's alert.

        The copy contains a value that matches a rule of the mapping, or an end time. Return None if
        no such copy can be built.
        """
        if not isinstance(value, dict):
            return None
        if not mapping.reads_fields and pagerduty.is_pagerduty_event(value):
            return {**value, "event_action": "resolve"}
        for rule in mapping.rules.resolved_when:
            changed = rule.build_matching_payload(value)
            if mapping.rules.resolves_alert(changed) and not mapping.rules.drops_payload(changed):
                return changed
        end = mapping.paths.get(AlertField.END_TIME)
        if mapping.rules.resolved_when or (mapping.reads_fields and not end):
            return None
        path = end[0] if end else (AlertField.END_TIME.value,)
        return set_value(value, path, format_utc_time(now))

    def build_snippets(
        self, url: str, key: str, *, base_url: str, body: str
    ) -> tuple[Snippet, ...]:
        """Return the general snippets, followed by snippets for specific tools."""
        others = super().build_snippets(url, key, base_url=base_url, body=body)
        return (*others, *build_http_snippets(url, key, base_url))


HTTP = HttpEndpoint()
