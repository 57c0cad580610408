"""Parser for generic JSON payloads: an object is one alert, an array contains one per object.

Every field is optional, and unknown fields are allowed. Each field is read from the key with its
own name, unless the integration maps it to other keys.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from domain.alerts.formats.base import LOOKS_LIKE, TIMES, Format, GroupingRule, Guide, Reading, Tool
from domain.alerts.formats.presets import PRESETS
from domain.alerts.formats.snippets import Snippet, sender_snippets
from domain.alerts.reading import fingerprint, pagerduty
from domain.alerts.reading.body import checked_object
from domain.alerts.reading.incoming import (
    DEFAULT_TITLE,
    AlertState,
    IncomingAlert,
    NoValidItem,
    ParsedBody,
    RefusedItem,
)
from domain.alerts.reading.mapping import UNMAPPED, AlertField, FieldMapping
from domain.alerts.reading.severity import GENERIC_WORDS, read_severity
from domain.alerts.reading.text import (
    WHOLE,
    excerpt,
    is_blank,
    short_text,
    texts_within,
)
from domain.alerts.reading.times import AlertEnd, in_order, read_end, read_start

#: Keys of every Alertmanager webhook. Other payloads rarely contain all of them.
_WEBHOOK_MARKS = frozenset({"alerts", "groupKey", "receiver"})
_LOOKS_LIKE_A_WEBHOOK = (
    f"{LOOKS_LIKE} a webhook of Prometheus Alertmanager or Grafana. Send it to an integration "
    "of the type “Prometheus Alertmanager”, which opens a separate alert for each of its alerts."
)
#: Keys of the items that Prometheus posts to an Alertmanager.
_ARRAY_MARKS = frozenset({"labels", "startsAt", "endsAt"})
_LOOKS_LIKE_PROMETHEUS = (
    f"{LOOKS_LIKE} alerts from Prometheus or vmalert. Send them to an integration of the type "
    "“Prometheus Alertmanager”, which recognizes them by their labels and resolves them."
)
#: Alternative key that some senders use.
_OTHER_ENVIRONMENT = "gitlab_environment_name"

_UNGROUPED = "none, because grouping is turned off"


def _identify(
    body: Mapping[str, object], given: object, mapping: FieldMapping, *, automatic_fingerprint: bool
) -> tuple[bytes | None, str, str | None]:
    """Return the fingerprint, its source, and a warning if the sender's fingerprint is unusable."""
    name = mapping.sources[AlertField.FINGERPRINT]
    warning = None
    if not is_blank(given):
        if fingerprint.is_fingerprint(given):
            return fingerprint.of_value(given), f"the {name} field", None
        warning = f"{name} is not a string, number or array: {excerpt(given)}, so it is ignored."
    if not automatic_fingerprint:
        return None, _UNGROUPED, warning
    made_of = f"the whole payload without {mapping.volatile}"
    return fingerprint.of("payload", mapping.stable_part(body)), made_of, warning


def _read_alert(
    body: Mapping[str, object],
    index: int,
    mapping: FieldMapping,
    *,
    now: datetime,
    automatic_fingerprint: bool,
) -> IncomingAlert:
    fields, sources = mapping.fields(body), mapping.sources
    severity = read_severity(
        fields.get(AlertField.SEVERITY), GENERIC_WORDS, mapping.rules.severity_words
    )
    start = read_start(
        fields.get(AlertField.START_TIME), name=sources[AlertField.START_TIME], now=now
    )
    end = read_end(fields.get(AlertField.END_TIME), name=sources[AlertField.END_TIME])
    if mapping.rules.resolved_when:  # The rules decide whether the alert is resolved.
        is_over = mapping.rules.is_over(body)
        end = AlertEnd(end.time or now, end.warning) if is_over else AlertEnd(None, None)
    started_at = start.time
    if end.time is not None:
        started_at, end = in_order(start, end)
    title = short_text(fields.get(AlertField.TITLE), 200)
    identity, made_of, warning = _identify(
        *(body, fields.get(AlertField.FINGERPRINT), mapping),
        automatic_fingerprint=automatic_fingerprint,
    )
    environment = short_text(fields.get(AlertField.ENVIRONMENT), 255)
    if environment is None and AlertField.ENVIRONMENT not in mapping.paths:
        environment = short_text(fields.get(_OTHER_ENVIRONMENT), 255)
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
        environment=environment,
        fingerprint=identity,
        fingerprint_source=made_of,
        severity_reason=severity.reason,
        runbook=short_text(fields.get(AlertField.RUNBOOK), WHOLE),
        query=None,
        markdown=None,
        y_label=None,
        generator_url=None,
        parse_warnings=tuple(filter(None, (start.warning, end.warning, warning, severity.warning))),
        item_index=index,
        left_out=frozenset(name for name, is_so in left_out.items() if is_so),
    )


def parse_each(
    items: Sequence[object],
    *,
    now: datetime,
    automatic_fingerprint: bool,
    mapping: FieldMapping = UNMAPPED,
) -> ParsedBody:
    """Parse one alert for each object of an array.

    Other items are rejected one by one. A readable end time resolves the alert, even if it lies in
    the future. Without a usable fingerprint, the payload itself identifies the alert. If
    `automatic_fingerprint` is off, such an alert has no fingerprint. Items that match a drop rule
    of the mapping do not become alerts. Raise NoValidItem if the array contains no object.
    """
    alerts, refused, dropped = [], [], 0
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            refused.append(RefusedItem(item_index=index, reason="it is not an object"))
        elif mapping.rules.dropped_when and mapping.rules.is_dropped(item):
            dropped += 1
        else:
            alert = _read_alert(
                item, index, mapping, now=now, automatic_fingerprint=automatic_fingerprint
            )
            alerts.append(alert)
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


class GenericAlert(BaseModel):
    """An alert. All fields are optional; additional fields are stored and shown."""

    model_config = ConfigDict(extra="allow")

    title: str = Field(
        default="New: Alert", description="Title. Lists show at most 200 characters."
    )
    description: str = ""
    start_time: str | int | float = Field(default="", description=f"Start time: {TIMES}")
    end_time: str | int | float = Field(
        default="", description=f"End time, which resolves the alert: {TIMES}"
    )
    service: str = ""
    monitoring_tool: str = ""
    hosts: str | list[str] = ""
    severity: str = Field(
        default="critical", description="Severity: critical, high, medium, low, info or unknown."
    )
    fingerprint: str | int | list[Any] = Field(
        default="",
        description="Fingerprint. Reports with the same fingerprint are grouped into one alert.",
    )
    platform_environment_name: str = ""
    runbook: str = ""


def _is_of_prometheus(item: object) -> bool:
    return isinstance(item, dict) and item.keys() >= _ARRAY_MARKS


def _with_warning(parsed: ParsedBody, warning: str) -> ParsedBody:
    return replace(parsed, parse_warnings=(*parsed.parse_warnings, warning))


class HttpEndpoint(Format):
    """Format for any JSON object, or an array of objects."""

    name = "http"
    label = "HTTP Endpoint"
    help = "HTTP Endpoint accepts any JSON object."
    has_mapping = True
    takes_sns = True
    takes_events = True
    body = GenericAlert | list[GenericAlert]
    tools = (
        Tool(
            name="PagerDuty Events API",
            marks="routing_key event_action",
            hint="Events are read without a mapping.",
        ),
        *PRESETS,
    )
    guides = (
        Guide("uptime-kuma", "Uptime Kuma"),
        Guide("zabbix", "Zabbix"),
        Guide("sentry", "Sentry"),
        Guide("cloudwatch", "CloudWatch"),
        Guide("healthchecks", "Healthchecks"),
        Guide("nagios", "Nagios"),
        Guide("curl", "curl"),
    )

    def parse(
        self, value: object, *, now: datetime, reading: Reading, mapping: FieldMapping = UNMAPPED
    ) -> ParsedBody:
        """Parse one alert for each object.

        Without a mapping, events of PagerDuty's Events API are recognized by their keys. Raise
        InvalidEvent if such an event is malformed. A body that looks like a webhook of Alertmanager
        is parsed anyway, with a warning.
        """
        flag = reading.automatic_fingerprint
        if isinstance(value, list):
            parsed = parse_each(value, now=now, automatic_fingerprint=flag, mapping=mapping)
            is_misread = not mapping.reads_fields and any(map(_is_of_prometheus, value))
            return _with_warning(parsed, _LOOKS_LIKE_PROMETHEUS) if is_misread else parsed
        payload, reads_fields = checked_object(value), mapping.reads_fields
        if not reads_fields and pagerduty.is_event(payload):
            return pagerduty.parse(payload, now=now, automatic_fingerprint=flag)
        parsed = parse_each([payload], now=now, automatic_fingerprint=flag, mapping=mapping)
        if not reads_fields and payload.keys() >= _WEBHOOK_MARKS:
            return _with_warning(parsed, _LOOKS_LIKE_A_WEBHOOK)
        return parsed

    def labels(self, value: object, item_index: int) -> Iterable[object]:
        """Return the object itself, or the members of a PagerDuty event that are its labels."""
        if isinstance(value, dict) and pagerduty.is_event(value):
            return (pagerduty.label_members(value),)
        return super().labels(value, item_index)

    def read_by(self, mapping: FieldMapping) -> str:
        """Return a phrase that states whether the mapping was used."""
        return "read by its mapping" if mapping.reads_fields else "read by the default fields"

    def grouping_rules(
        self, part: Mapping[str, object], item: IncomingAlert, mapping: FieldMapping
    ) -> Iterator[GroupingRule]:
        """Yield the event's key, the sender's fingerprint, and the rest of the payload."""
        del item
        if pagerduty.is_event(part):
            key = pagerduty.dedup_key_of(part)
            sentence = "Events with the same dedup_key are grouped into one alert."
            yield GroupingRule(fingerprint.of_value(key), sentence, {"dedup_key": key})
        given = mapping.fields(part).get(AlertField.FINGERPRINT)
        name = mapping.sources[AlertField.FINGERPRINT]
        if fingerprint.is_fingerprint(given):
            sentence = f"Reports with the same {name} are grouped into one alert."
            yield GroupingRule(fingerprint.of_value(given), sentence, {name: given})
        stable = mapping.stable_part(part)
        sentence = f"Reports that differ only in {mapping.volatile} are grouped into one alert."
        yield GroupingRule(fingerprint.of("payload", stable), sentence, stable)

    def misread(self) -> str:
        """Return a sentence about misdirected webhooks that names the correct type."""
        return (
            "Send webhooks of Prometheus Alertmanager or Grafana to an integration of the type "
            "“Prometheus Alertmanager”, which opens an alert for each alert in the webhook"
        )

    def example(self, started: str) -> Mapping[str, Any]:
        """Return an alert with all standard fields and an additional one."""
        return {
            "title": "Disk almost full on web-1",
            "description": "/var has 2 % left; it fills in about 40 minutes.",
            "start_time": started,
            "service": "web",
            "monitoring_tool": "test",
            "hosts": ["web-1"],
            "severity": "high",
            "fingerprint": "disk-web-1-var",
            "platform_environment_name": "production",
            "mount": {"path": "/var", "free_percent": 2},
        }

    def snippets(self, url: str, key: str, *, base_url: str, now: datetime) -> tuple[Snippet, ...]:
        """Return the general snippets, followed by those for specific tools."""
        others = super().snippets(url, key, base_url=base_url, now=now)
        return (*others, _pagerduty(base_url, key), *sender_snippets(url, key))


def _pagerduty(base_url: str, key: str) -> Snippet:
    event = {"url": f"{base_url}/v2/enqueue", "routing_key": key}
    return Snippet(
        title="PagerDuty: Events API v2 URL and routing key, for tools that support it",
        language="json",
        text=f"{orjson.dumps(event, option=orjson.OPT_INDENT_2).decode()}\n",
    )


HTTP = HttpEndpoint()
