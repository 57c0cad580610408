"""Reads the webhook of Prometheus Alertmanager, which Grafana and others send as well.

In addition to the attributes of the specification, the labels service, instance and host fill the
alert's service and hosts, and the annotation runbook_url is the fallback for runbook.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import unquote_to_bytes

from domain.alerts.reading import fingerprint
from domain.alerts.reading.body import checked_object
from domain.alerts.reading.incoming import (
    AlertState,
    IncomingAlert,
    MissingAttributes,
    NoValidItem,
    ParsedBody,
    RefusedItem,
)
from domain.alerts.reading.severity import METRICS_WORDS, NO_WORDS, Words, read_severity
from domain.alerts.reading.text import (
    first_text,
    is_blank,
    short_text,
    storable,
    texts_within,
    whole_text,
)
from domain.alerts.reading.times import AlertEnd, AlertStart, in_order, read_end, read_start

REQUIRED = (
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

#: Senders in the field use the second spelling.
_ENVIRONMENT = ("platform_environment_name", "gitlab_environment_name")

_QUERY_PARAMETER = "g0.expr="
#: A lone surrogate encoded as UTF-8: it is replaced as one character, not as three bytes.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_REPLACEMENT = "\ufffd".encode()
_LARGEST_COUNT = 2**31 - 1

_BY_ITEM = "the item's own fingerprint"
_BY_LABELS = "its labels"
_BY_TITLE = "its title"


class _NoAlertError(Exception):
    """The item is no alert; the message is the reason."""


def _read_names(item: Mapping[str, object], attribute: str) -> Mapping[str, object]:
    names = item.get(attribute)
    if names is None:
        return {}
    if not isinstance(names, dict):
        raise _NoAlertError(f"{attribute} is not an object")
    return names


def _read_title(labels: Mapping[str, object], annotations: Mapping[str, object]) -> str:
    title = first_text(
        (annotations.get("title"), annotations.get("summary"), labels.get("alertname"))
    )
    if title is None:
        raise _NoAlertError(
            "it has no title: none of annotations.title, annotations.summary "
            "and labels.alertname is present"
        )
    return title


def _read_end(item: Mapping[str, object], *, now: datetime) -> AlertEnd:
    """Return the end of an item: endsAt if it is past, else now if its own status is resolved.

    Alertmanager sets endsAt in the future for firing alerts; the status of the group is ignored.
    """
    end = read_end(item.get("endsAt"), name="endsAt")
    if end.time is not None and end.time <= now:
        return end
    status = item.get("status")
    is_resolved = isinstance(status, str) and status.strip().lower() == "resolved"
    return AlertEnd(now if is_resolved else None, end.warning)


def _identify(
    item: Mapping[str, object], labels: Mapping[str, object], title: str
) -> tuple[bytes, str]:
    given = item.get("fingerprint")
    if fingerprint.is_fingerprint(given) and not isinstance(given, list):
        return fingerprint.of_value(given), _BY_ITEM
    if labels:
        return fingerprint.of_labels(labels), _BY_LABELS
    return fingerprint.of_title(title), _BY_TITLE


def _read_query(generator_url: str | None) -> str | None:
    """Return the expression of the metric, a parameter of the graph's URL."""
    if generator_url is None or _QUERY_PARAMETER not in generator_url:
        return None
    parameters = generator_url.partition("#")[0].partition("?")[2].split("&")
    found = (part for part in parameters if part.startswith(_QUERY_PARAMETER))
    expression = next(found, "").removeprefix(_QUERY_PARAMETER)
    expression_bytes = unquote_to_bytes(expression.replace("+", " "))
    return (
        storable(_SURROGATE.sub(_REPLACEMENT, expression_bytes).decode("utf-8", "replace")) or None
    )


def _read_hosts(labels: Mapping[str, object]) -> tuple[str, ...]:
    hosts = dict.fromkeys(texts_within([labels.get("instance"), labels.get("host")], 255))
    return tuple(hosts)


def _first_whole(names: Mapping[str, object], *keys: str) -> str | None:
    for key in keys:
        if (text := whole_text(names.get(key))) is not None:
            return text
    return None


def _read_item(item: object, index: int, own: Words, *, now: datetime) -> IncomingAlert:
    if not isinstance(item, dict):
        raise _NoAlertError("it is not an object")
    labels, annotations = _read_names(item, "labels"), _read_names(item, "annotations")
    title = _read_title(labels, annotations)
    if is_blank(item.get("startsAt")):
        raise _NoAlertError("startsAt is missing")
    start = read_start(item["startsAt"], name="startsAt", now=now)
    started_at, end = in_order(start, _read_end(item, now=now))
    severity = read_severity(labels.get("severity"), METRICS_WORDS, own)
    identity, source = _identify(item, labels, title)
    generator_url = _first_whole(item, "generatorURL", "generatorUrl")
    return IncomingAlert(
        title=title,
        description=short_text(annotations.get("description"), 1000),
        severity=severity.severity,
        state=AlertState.FIRING if end.time is None else AlertState.RECOVERY,
        started_at=started_at,
        ended_at=end.time,
        service=short_text(labels.get("service"), 100),
        monitoring_tool=MONITORING_TOOL,
        hosts=_read_hosts(labels),
        environment=first_text(map(labels.get, _ENVIRONMENT), 255),
        fingerprint=identity,
        fingerprint_source=source,
        severity_reason=severity.reason,
        runbook=_first_whole(annotations, "runbook", "runbook_url"),
        query=_read_query(generator_url),
        markdown=_first_whole(
            annotations, "platform_incident_markdown", "gitlab_incident_markdown"
        ),
        y_label=_first_whole(annotations, "platform_y_label", "gitlab_y_label") or title,
        generator_url=generator_url,
        parse_warnings=tuple(filter(None, (start.warning, end.warning, severity.warning))),
        item_index=index,
        left_out=_left_out(labels, start),
    )


def _left_out(labels: Mapping[str, object], start: AlertStart) -> frozenset[str]:
    names = {"severity": is_blank(labels.get("severity")), "started_at": not start.is_given}
    return frozenset(name for name, is_left_out in names.items() if is_left_out)


def _count_left_out(body: Mapping[str, object]) -> int:
    count = body.get("truncatedAlerts")
    if isinstance(count, int) and not isinstance(count, bool):
        return min(max(count, 0), _LARGEST_COUNT)
    return 0


def _warnings_on_left_out(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    return (f"The sender left out {count} more alerts (truncatedAlerts); raise its max_alerts.",)


def _items_of(body: Mapping[str, object]) -> list[object]:
    missing = [name for name in REQUIRED if name not in body]
    items = body.get("alerts")
    if isinstance(items, list) and not missing:
        return items
    raise MissingAttributes(missing or ["alerts (an array)"])


def parse(
    body: Mapping[str, object], *, now: datetime, severity_words: Words = NO_WORDS
) -> ParsedBody:
    """Read one alert for each item; invalid items are refused one by one.

    `severity_words` is the integration's own table of words.

    Raise MissingAttributes, or NoValidItem if no item is valid. Any value of `version` is accepted,
    and the attributes of the group are not used for the items.
    """
    alerts, refused = [], []
    for index, item in enumerate(_items_of(body)):
        try:
            alerts.append(_read_item(item, index, severity_words, now=now))
        except _NoAlertError as error:
            refused.append(RefusedItem(item_index=index, reason=str(error)))
    if not alerts:
        message = "None of the items in alerts is an alert." if refused else "alerts is empty."
        raise NoValidItem(message, refused=refused)
    left_out = _count_left_out(body)
    return ParsedBody(
        alerts=tuple(alerts),
        refused=tuple(refused),
        truncated_alerts=left_out,
        parse_warnings=_warnings_on_left_out(left_out),
    )


def shown_part(body: Mapping[str, object], item_index: int) -> Mapping[str, object]:
    """Return one item of a body, its annotations and labels first, for the page of an alert."""
    item = checked_object(_items_of(body)[item_index])
    first: dict[str, object] = {
        name: item[name] for name in ("annotations", "labels") if name in item
    }
    return {**first, **item}
