"""Parser for Prometheus Alertmanager's webhook format, which Grafana and other tools also use.

The parser also reads the service from the `service` label, and hosts from the `instance` and `host`
labels. The `runbook_url` annotation is a fallback for `runbook`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any, TypeGuard
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel, ConfigDict, Field, RootModel
from pydantic.alias_generators import to_camel

from domain.alerts.formats.base import (
    TIME_NOTATIONS,
    WRONG_FORMAT_PREFIX,
    AlertFormat,
    ApiUrlSetting,
    GroupingRule,
    Guide,
    ParserSettings,
)
from domain.alerts.formats.snippets import Snippet, build_prometheus_snippets
from domain.alerts.parsing import fingerprint
from domain.alerts.parsing.incoming_alert import (
    AlertState,
    IncomingAlert,
    MissingAttributesError,
    NoValidItemError,
    ParsedBody,
    RejectedAlertItem,
)
from domain.alerts.parsing.json_body import require_object
from domain.alerts.parsing.mapping import NO_FIELD_MAPPING, FieldMapping
from domain.alerts.parsing.mapping_rules import NO_RULES, MappingRules
from domain.alerts.parsing.severity import METRICS_SEVERITY_WORDS, parse_severity
from domain.alerts.parsing.text_conversion import (
    UNLIMITED_LENGTH,
    convert_to_limited_lines,
    convert_to_short_text,
    find_first_text,
    is_blank,
    replace_unstorable_characters,
)
from domain.alerts.parsing.times import (
    AlertEnd,
    AlertStart,
    format_utc_time,
    order_start_and_end,
    parse_end_time,
    parse_start_time,
)
from domain.alerts.tools.base import MonitoringTool

REQUIRED_ATTRIBUTES = (
    "alerts",
    "commonAnnotations",
    "commonLabels",
    "externalURL",
    "groupKey",
    "groupLabels",
    "receiver",
    "status",
    "version",
)

MONITORING_TOOL = "Prometheus"
#: Default API URL of an integration. The URL is stored and never requested.
PLACEHOLDER_API_URL = "http://prometheus.example.com"
#: Keys in every webhook. Other payloads rarely contain all keys.
_WEBHOOK_KEYS = frozenset({"alerts", "groupKey", "receiver"})
#: Keys of alerts in Alertmanager's API. Prometheus sends at least one of these keys.
_ARRAY_ITEM_KEYS = frozenset({"endsAt", "generatorURL"})
_SINGLE_ALERT_HINT = (
    f"{WRONG_FORMAT_PREFIX} a single alert. Send it to an integration of the type “HTTP Endpoint”."
)

#: Labels that contain the environment. Some senders use the second label.
_ENVIRONMENT_LABELS = ("platform_environment_name", "gitlab_environment_name")

_QUERY_PARAMETER = "g0.expr="
#: Pattern of a surrogate encoded in UTF-8, which is replaced by one character instead of three.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_REPLACEMENT = "\ufffd".encode()
_MAX_COUNT = 2**31 - 1

_SOURCE_ITEM = "the item's own fingerprint"
_SOURCE_LABELS = "its labels"
_SOURCE_TITLE = "its title"


#: Alert names that Grafana uses for all rules with missing data or errors. The `rulename` label
#: contains the rule's own name.
_GRAFANA_STATE_NAMES = ("DatasourceNoData", "DatasourceError")


class _PostedAlert(dict[str, object]):
    """One alert from an array in the format of Alertmanager's API."""


class _InvalidItemError(Exception):
    """Error for an item that is not a valid alert. The message states the reason."""


def _get_optional_object(item: Mapping[str, object], attribute: str) -> Mapping[str, object]:
    names = item.get(attribute)
    if names is None:
        return {}
    if not isinstance(names, dict):
        raise _InvalidItemError(f"{attribute} is not an object")
    return names


def _parse_title(labels: Mapping[str, object], annotations: Mapping[str, object]) -> str:
    name = labels.get("alertname")
    if name in _GRAFANA_STATE_NAMES:
        name = labels.get("rulename") or name
    title = find_first_text((annotations.get("title"), annotations.get("summary"), name))
    if title is None:
        raise _InvalidItemError(
            "it has no title: none of annotations.title, annotations.summary "
            "and labels.alertname is present"
        )
    return title


def _parse_item_end(item: Mapping[str, object], *, now: datetime) -> AlertEnd:
    """Return the end time of an item, or no end time if the alert is firing.

    The end time is `endsAt` if it is in the past, or `now` if the status is resolved. Alertmanager
    sets `endsAt` in the future for firing alerts. The status of the group is ignored.
    """
    end = parse_end_time(item.get("endsAt"), name="endsAt")
    if end.time is not None and end.time <= now:
        return end
    status = item.get("status")
    is_resolved = isinstance(status, str) and status.strip().lower() == "resolved"
    return AlertEnd(now if is_resolved else None, end.warning)


def _identify_alert(
    item: Mapping[str, object], labels: Mapping[str, object], title: str
) -> tuple[bytes, str]:
    given = item.get("fingerprint")
    if fingerprint.is_usable_fingerprint(given) and not isinstance(given, list):
        return fingerprint.compute_sender_fingerprint(given), _SOURCE_ITEM
    if labels:
        return fingerprint.compute_fingerprint("labels", labels), _SOURCE_LABELS
    return fingerprint.compute_fingerprint("title", title), _SOURCE_TITLE


def _parse_query(generator_url: str | None) -> str | None:
    """Return the query expression, which is a parameter in the URL of the graph."""
    if generator_url is None or _QUERY_PARAMETER not in generator_url:
        return None
    parameters = generator_url.partition("#")[0].partition("?")[2].split("&")
    found = (part for part in parameters if part.startswith(_QUERY_PARAMETER))
    expression = next(found, "").removeprefix(_QUERY_PARAMETER)
    expression_bytes = unquote_to_bytes(expression.replace("+", " "))
    return (
        replace_unstorable_characters(
            _SURROGATE.sub(_REPLACEMENT, expression_bytes).decode("utf-8", "replace")
        )
        or None
    )


def _parse_hosts(labels: Mapping[str, object]) -> tuple[str, ...]:
    hosts = dict.fromkeys(
        convert_to_limited_lines([labels.get("instance"), labels.get("host")], 255)
    )
    return tuple(hosts)


def _find_untruncated_text(names: Mapping[str, object], *keys: str) -> str | None:
    for key in keys:
        if (text := convert_to_short_text(names.get(key), UNLIMITED_LENGTH)) is not None:
            return text
    return None


def _parse_item(
    item: object, index: int, rules: MappingRules, *, now: datetime, may_lack_start: bool
) -> IncomingAlert:
    if not isinstance(item, dict):
        raise _InvalidItemError("it is not an object")
    labels, annotations = (
        _get_optional_object(item, "labels"),
        _get_optional_object(item, "annotations"),
    )
    title = _parse_title(labels, annotations)
    if is_blank(item.get("startsAt")) and not may_lack_start:
        raise _InvalidItemError("startsAt is missing")
    start = parse_start_time(item.get("startsAt"), name="startsAt", now=now)
    started_at, end = order_start_and_end(start, _parse_item_end(item, now=now))
    severity = parse_severity(labels.get("severity"), METRICS_SEVERITY_WORDS, rules.severity_words)
    identity, source = _identify_alert(item, labels, title)
    generator_url = _find_untruncated_text(item, "generatorURL", "generatorUrl")
    return IncomingAlert(
        title=title,
        description=convert_to_short_text(annotations.get("description"), 1000),
        severity=severity.severity,
        state=AlertState.FIRING if end.time is None else AlertState.RECOVERY,
        started_at=started_at,
        ended_at=end.time,
        service=find_first_text(map(labels.get, (*rules.service_labels, "service")), 100),
        monitoring_tool=MONITORING_TOOL,
        hosts=_parse_hosts(labels),
        environment=find_first_text(
            map(labels.get, (*rules.environment_labels, *_ENVIRONMENT_LABELS)), 255
        ),
        fingerprint=identity,
        fingerprint_source=source,
        severity_reason=severity.reason,
        runbook=_find_untruncated_text(annotations, "runbook", "runbook_url"),
        query=_parse_query(generator_url),
        markdown=_find_untruncated_text(
            annotations, "platform_incident_markdown", "gitlab_incident_markdown"
        ),
        y_label=_find_untruncated_text(annotations, "platform_y_label", "gitlab_y_label") or title,
        generator_url=generator_url,
        parse_warnings=tuple(filter(None, (start.warning, end.warning, severity.warning))),
        item_index=index,
        left_out=_find_omitted_fields(labels, start),
    )


def _find_omitted_fields(labels: Mapping[str, object], start: AlertStart) -> frozenset[str]:
    names = {"severity": is_blank(labels.get("severity")), "started_at": not start.is_certain}
    return frozenset(name for name, is_left_out in names.items() if is_left_out)


def _is_alert_array(value: object) -> TypeGuard[list[object]]:
    """Return whether a body is an array of alerts in the format of Alertmanager's API.

    Notifications from collectd look similar, but their recoveries have different labels.
    """
    return isinstance(value, list) and any(
        isinstance(item, dict) and "labels" in item and item.keys() & _ARRAY_ITEM_KEYS
        for item in value
    )


def _count_omitted_alerts(body: Mapping[str, object]) -> int:
    count = body.get("truncatedAlerts")
    if isinstance(count, int) and not isinstance(count, bool):
        return min(max(count, 0), _MAX_COUNT)
    return 0


def _build_omission_warnings(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    alerts = "1 alert" if count == 1 else f"{count:,} alerts"
    return (f"The sender omitted {alerts} (truncatedAlerts). Increase its `max_alerts` setting.",)


def _get_items(body: Mapping[str, object] | list[object]) -> list[object]:
    if isinstance(body, list):
        return body
    if isinstance(body, _PostedAlert):
        return [body]
    missing = [name for name in REQUIRED_ATTRIBUTES if name not in body]
    items = body.get("alerts")
    if isinstance(items, list) and not missing:
        return items
    raise MissingAttributesError(missing or ["alerts (an array)"])


def parse_webhook_items(
    body: Mapping[str, object] | list[object], *, now: datetime, rules: MappingRules = NO_RULES
) -> ParsedBody:
    """Parse one alert for each item. Invalid items are rejected individually.

    An array has the format of Alertmanager's API, in which `startsAt` is optional
    (https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml).

    Only the severity words and label names in `rules` are used. Any value of `version` is accepted,
    and the attributes of the group are not applied to the items.

    Raise MissingAttributesError if required attributes are missing, and NoValidItemError if no item
    is valid.
    """
    alerts, refused = [], []
    is_webhook = not isinstance(body, list | _PostedAlert)
    for index, item in enumerate(_get_items(body)):
        try:
            read = _parse_item(item, index, rules, now=now, may_lack_start=not is_webhook)
            alerts.append(read)
        except _InvalidItemError as error:
            refused.append(RejectedAlertItem(item_index=index, reason=str(error)))
    if not alerts:
        name = "alerts" if is_webhook else "The array"
        message = (
            f"None of the items in {name.lower()} is an alert." if refused else f"{name} is empty."
        )
        raise NoValidItemError(message, refused=refused)
    left_out = 0 if isinstance(body, list) else _count_omitted_alerts(body)
    return ParsedBody(
        alerts=tuple(alerts),
        refused=tuple(refused),
        truncated_alerts=left_out,
        parse_warnings=_build_omission_warnings(left_out),
    )


class MetricsItem(BaseModel):
    """An alert in an Alertmanager webhook."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

    starts_at: str = Field(description=f"Start time, {TIME_NOTATIONS}")
    status: str = Field(
        default="firing", description="Status of the alert, `firing` or `resolved`."
    )
    labels: dict[str, Any] = Field(
        default_factory=dict,
        description="Labels of the alert. `alertname` is the title if no annotation contains one.",
    )
    annotations: dict[str, Any] = Field(
        default_factory=dict,
        description="Annotations of the alert. `title` or `summary` is used as the title.",
    )
    ends_at: str = ""
    generator_url: str = Field(default="", alias="generatorURL")
    fingerprint: str = ""


class MetricsAlerts(BaseModel):
    """An Alertmanager webhook, which Grafana also sends."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

    version: str
    group_key: str
    status: str
    receiver: str
    group_labels: dict[str, Any]
    common_labels: dict[str, Any]
    common_annotations: dict[str, Any]
    external_url: str = Field(alias="externalURL")
    alerts: list[MetricsItem] = Field(min_length=1)
    truncated_alerts: int = Field(
        default=0, description="Number of alerts that the sender omitted."
    )


class AlertArray(RootModel[list[MetricsItem]]):
    """Alerts that Prometheus, vmalert, and the rulers of Loki and Mimir post to an Alertmanager."""


class Prometheus(AlertFormat):
    """Format of Alertmanager's webhook, and of the arrays that Alertmanager's own API accepts."""

    name = "prometheus"
    label = "Prometheus Alertmanager"
    help = (
        "Prometheus Alertmanager accepts webhooks from Alertmanager and Grafana, and alerts from "
        "Prometheus."
    )
    api_url = ApiUrlSetting(
        help=f"Deprecated and no longer used. Any URL is accepted, such as {PLACEHOLDER_API_URL}.",
        default=PLACEHOLDER_API_URL,
    )
    has_markdown = True
    accepts_groups = True
    body = MetricsAlerts | list[MetricsItem]
    has_labels = True
    #: Status code 503, because Alertmanager retries after a 503 response, but not after a 429
    #: response.
    retry_status = HTTPStatus.SERVICE_UNAVAILABLE
    guides = (
        Guide("alertmanager", "Alertmanager"),
        Guide("grafana", "Grafana"),
        Guide("curl", "curl"),
    )

    def list_tools(self) -> Sequence[MonitoringTool]:
        """Return the known tools that send this format."""
        # Only processes that recognize messages load the declarations of the tools.
        from domain.alerts.tools.registry import PROMETHEUS_TOOLS  # noqa: PLC0415 - see above

        return PROMETHEUS_TOOLS

    def parse(
        self,
        value: object,
        *,
        now: datetime,
        reading: ParserSettings,
        mapping: FieldMapping = NO_FIELD_MAPPING,
    ) -> ParsedBody:
        """Parse one alert for each item in a webhook or in an array for Alertmanager's API."""
        del reading
        payload = value if _is_alert_array(value) else require_object(value)
        try:
            return parse_webhook_items(payload, now=now, rules=mapping.rules)
        except MissingAttributesError as error:
            if isinstance(payload, list) or _WEBHOOK_KEYS & payload.keys():
                raise
            raise MissingAttributesError(error.names, hint=_SINGLE_ALERT_HINT) from error

    def list_body_items(self, value: object) -> Sequence[object]:
        """Return the alerts in a body, which is a webhook or an array of alerts."""
        if isinstance(value, list):
            return value
        items = value.get("alerts") if isinstance(value, dict) else None
        return items if isinstance(items, list) else ()

    def build_sample_body(self, sample: Mapping[str, object]) -> object:
        """Return a webhook unchanged, or a single alert wrapped in an array."""
        return sample if _WEBHOOK_KEYS & sample.keys() else [sample]

    def reduce_body_to_item(
        self, value: object, item_index: int, mapping: FieldMapping = NO_FIELD_MAPPING
    ) -> Mapping[str, object]:
        """Return a webhook with only one of its items, or one item of an array."""
        if isinstance(value, list):
            return _PostedAlert(super().reduce_body_to_item(value, item_index, mapping))
        payload = require_object(value)
        if not isinstance(payload.get("alerts"), list):
            return payload
        return {**payload, "alerts": self.list_body_items(payload)[item_index : item_index + 1]}

    def get_displayed_payload(self, only: Mapping[str, object]) -> Mapping[str, object]:
        """Return the item with its annotations and labels first."""
        item = require_object(_get_items(only)[0])
        first: dict[str, object] = {
            name: item[name] for name in ("annotations", "labels") if name in item
        }
        return {**first, **item}

    def labels(self, value: object, item_index: int) -> Iterable[object]:
        """Return the group's labels, followed by the item's labels, which take precedence."""
        common = value.get("commonLabels") if isinstance(value, dict) else None
        own = (
            item.get("labels") if isinstance(item, dict) else None
            for item in super().labels(value, item_index)
        )
        return (common, *own)

    def describe_parsing(self, mapping: FieldMapping) -> str:
        """Return a phrase that describes how the payload was parsed."""
        del mapping
        return "as an Alertmanager webhook"

    def list_grouping_rules(
        self, part: Mapping[str, object], item: IncomingAlert, mapping: FieldMapping
    ) -> Iterator[GroupingRule]:
        """Yield rules for the sender's fingerprint, the labels, and the title."""
        del mapping
        given, labels = part.get("fingerprint"), part.get("labels")
        labels = labels if isinstance(labels, dict) else {}
        if fingerprint.is_usable_fingerprint(given):
            yield GroupingRule(
                fingerprint.compute_sender_fingerprint(given),
                "Reports with the same fingerprint from the sender are grouped into one alert.",
                {"fingerprint": given, "labels": labels},
            )
        yield GroupingRule(
            fingerprint.compute_fingerprint("labels", labels),
            "Reports with the same labels are grouped into one alert.",
            {"labels": labels},
        )
        yield GroupingRule(
            fingerprint.compute_fingerprint("title", item.title),
            "Reports without labels are grouped by their title.",
            {"title": item.title},
        )

    def describe_misdirected_deliveries(self) -> str:
        """Return advice that names the correct integration type for misdirected alerts."""
        return "Send single alerts to an integration of the type “HTTP Endpoint”"

    def example(self, started: str) -> Mapping[str, Any]:
        """Return a webhook with one alert."""
        labels = {"alertname": "InstanceDown", "instance": "web-1:9100", "severity": "page"}
        annotations = {
            "summary": "web-1 does not answer",
            "description": "web-1:9100 of job node has been down for five minutes.",
        }
        return {
            "version": "4",
            "groupKey": '{}:{alertname="InstanceDown"}',
            "status": "firing",
            "receiver": "gatebell",
            "groupLabels": {"alertname": "InstanceDown"},
            "commonLabels": labels,
            "commonAnnotations": annotations,
            "externalURL": "http://alertmanager.example:9093",
            "truncatedAlerts": 0,
            "alerts": [
                {
                    "status": "firing",
                    "labels": labels,
                    "annotations": annotations,
                    "startsAt": started,
                    "endsAt": "0001-01-01T00:00:00Z",
                    "generatorURL": "http://prometheus.example:9090/graph?g0.expr=up+%3D%3D+0",
                    "fingerprint": "5a9c3bd1f0e24477",
                }
            ],
        }

    def build_recovery(self, value: object, mapping: FieldMapping, *, now: datetime) -> object:
        """Return a webhook or an array whose alerts are resolved."""
        del mapping
        over = {"status": "resolved", "endsAt": format_utc_time(now)}
        items = [{**each, **over} for each in self.list_body_items(value) if isinstance(each, dict)]
        if isinstance(value, dict):
            return {**value, "status": "resolved", "alerts": items}
        return items

    def build_snippets(
        self, url: str, key: str, *, base_url: str, body: str
    ) -> tuple[Snippet, ...]:
        """Return snippets for Alertmanager, its operator and Grafana, then the general snippets."""
        others = super().build_snippets(url, key, base_url=base_url, body=body)
        return (*build_prometheus_snippets(url, key), *others)


PROMETHEUS = Prometheus()
