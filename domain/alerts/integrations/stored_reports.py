"""Reads stored deliveries again with a mapping, and counts the alerts that they would open."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from http import HTTPStatus
from itertools import islice
from typing import NamedTuple

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from domain.alerts.deliveries import MAX_EXAMINED_DELIVERIES, DeliverySize, list_ids_within_size
from domain.alerts.formats.base import AlertFormat, ParserSettings
from domain.alerts.formats.registry import get_format
from domain.alerts.integrations.mapping_types import ReportCounts
from domain.alerts.parsing.incoming_alert import (
    IncomingAlert,
    InvalidEventError,
    MissingAttributesError,
    NoValidItemError,
    ParsedBody,
    UnreadableBodyError,
)
from domain.alerts.parsing.mapping import AlertField, FieldMapping
from domain.alerts.parsing.mapping_rules import PayloadCondition
from domain.alerts.parsing.payload_paths import PayloadPath
from domain.alerts.parsing.text_conversion import convert_to_text
from domain.alerts.recognition.fields import find_field_match
from domain.alerts.recognition.identity import list_subject_leaves
from domain.alerts.recognition.leaves import Leaf
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.resolution import propose_resolution
from models import Delivery

#: Maximum size of a body, and maximum total size of all bodies, in bytes.
_MAX_BODY_BYTES, _MAX_TOTAL_BYTES = 64 * 1024, 512 * 1024
#: Maximum total number of items in all bodies.
_MAX_MESSAGES = 400
#: Pattern of a measured value, such as `93.5%` or `12 ms`, which changes with each report.
_MEASURED_VALUE = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?\s*(?:%|[munµ]?s\b|[KMGT]i?B\b)|\d+\.\d+")


class StoredMessage(Messages):
    """An item of a stored body. Its keys and values are examined without a mapping."""

    @cached_property
    def _subject_leaves(self) -> Sequence[Leaf]:
        return list_subject_leaves(self.leaves)

    @cached_property
    def subject(self) -> frozenset[tuple[PayloadPath, str]]:
        """Paths and values that identify the rule and the object, without measured values."""
        return frozenset(
            (leaf.path, _MEASURED_VALUE.sub("", convert_to_text(leaf.value)).casefold())
            for leaf in self._subject_leaves
        )

    @cached_property
    def recovery_rule(self) -> PayloadCondition | None:
        """Rule that matches the state of a recovery, or None if the item is not a recovery."""
        found = propose_resolution(self)
        return found.rule if found and found.rule.matches(self.firing) else None

    @cached_property
    def host(self) -> Leaf | None:
        """Value that names the hosts, or None."""
        found = find_field_match(AlertField.HOSTS, self._subject_leaves)
        return found.leaf if found else None


class StoredBody(NamedTuple):
    """A decoded body of a delivery, with a message for each of its items."""

    id: int
    received_at: datetime
    format: AlertFormat
    value: object
    messages: Sequence[StoredMessage]

    @property
    def payload(self) -> Mapping[str, object]:
        """Body as an object: the body itself, or the first item of an array.

        The mapping is empty if this value is not an object.
        """
        first = self.value[0] if isinstance(self.value, list) and self.value else self.value
        return first if isinstance(first, dict) else {}

    def split(self, mapping: FieldMapping) -> Mapping[int, StoredMessage]:
        """Return a message for each object that a mapping reads as an alert, by item index."""
        if not mapping.item_arrays:
            return dict(enumerate(self.messages))
        parts = self.format.list_alert_parts(self.value, mapping)
        return {
            index: StoredMessage(firing=part) for index, part in parts if isinstance(part, dict)
        }

    def read(self, mapping: FieldMapping, *, reading: ParserSettings) -> ParsedBody | None:
        """Return the alerts that a mapping reads, or None if the body can no longer be parsed."""
        at = self.received_at
        try:
            return self.format.parse(self.value, now=at, reading=reading, mapping=mapping)
        except (InvalidEventError, MissingAttributesError, NoValidItemError, UnreadableBodyError):
            return None


class ParsedReport(NamedTuple):
    """An alert that was read from a stored body, and its message."""

    alert: IncomingAlert
    message: StoredMessage

    @property
    def is_over(self) -> bool:
        """True if the report resolves its alert."""
        return self.alert.ended_at is not None

    @property
    def hosts(self) -> frozenset[str]:
        """Lowercase host names from the alert, or from its message if the alert has no hosts."""
        found: object = self.alert.hosts
        if not found:
            found = self.message.host.value if self.message.host else ()
        names = found if isinstance(found, list | tuple) else [found]
        return frozenset(convert_to_text(name).casefold() for name in names)


def find_stored_bodies(
    recent: Sequence[DeliverySize], *, session: Session, reading: ParserSettings
) -> Sequence[StoredBody]:
    """Return stored bodies of accepted deliveries, oldest first. Large bodies are excluded."""
    accepted = (row for row in recent if row.status_code == HTTPStatus.OK)
    small = [row for row in accepted if row.size <= _MAX_BODY_BYTES]
    ids = list_ids_within_size(small, _MAX_TOTAL_BYTES)
    bodies = read_stored_bodies(
        Delivery.id.in_(ids), limit=MAX_EXAMINED_DELIVERIES, session=session, reading=reading
    )
    found, room = [], _MAX_MESSAGES
    for body in bodies:
        room -= len(body.messages)
        if room < 0:
            break
        found.append(body)
    return found[::-1]


def read_stored_bodies(
    *conditions: ColumnElement[bool], limit: int, session: Session, reading: ParserSettings
) -> Iterator[StoredBody]:
    """Yield the stored bodies of deliveries that meet all conditions, newest first."""
    rows = session.execute(
        select(Delivery.id, Delivery.received_at, Delivery.format, Delivery.body)
        .where(Delivery.body.is_not(None), *conditions)
        .order_by(Delivery.id.desc())
        .limit(limit)
    )
    for row in rows:
        body_format = get_format(row.format)
        value = body_format.decode_stored_body(row.body, reading=reading)
        items = body_format.list_body_items(value)
        messages = [StoredMessage(firing=each if isinstance(each, dict) else {}) for each in items]
        yield StoredBody(row.id, row.received_at, body_format, value, messages)


def read_reports(
    bodies: Sequence[StoredBody], mapping: FieldMapping, *, reading: ParserSettings
) -> list[ParsedReport]:
    """Return the alerts that a mapping reads from stored bodies, in order."""
    reports = (
        ParsedReport(alert, messages[alert.item_index])
        for body in bodies
        if (parsed := body.read(mapping, reading=reading)) and parsed.event is None
        for messages in (body.split(mapping),)
        for alert in parsed.alerts
    )
    return list(islice(reports, _MAX_MESSAGES))


def count_reports(reports: Sequence[ParsedReport]) -> ReportCounts:
    """Count the effects that the reports would have in this order if no alert were open."""
    counts: Counter[str] = Counter()
    subjects: Counter[object] = Counter()
    opened: dict[bytes, ParsedReport] = {}
    for report in reports:
        fingerprint, subject = report.alert.fingerprint, report.message.subject
        first = opened.get(fingerprint) if fingerprint else None
        hosts = (first.hosts, report.hosts) if first else ()
        counts["merged_hosts"] += bool(hosts and all(hosts) and hosts[0].isdisjoint(hosts[1]))
        if report.is_over:
            counts["resolved" if first else "unmatched_recoveries"] += 1
            if first and fingerprint:
                subjects[opened.pop(fingerprint).message.subject] -= 1
            continue
        counts["joined" if first else "opened"] += 1
        if first is None and not report.message.recovery_rule:
            counts["repeats"] += bool(subject and subjects[subject] > 0)
            subjects[subject] += 1
        if first is None and fingerprint:
            opened[fingerprint] = report
    return ReportCounts(**counts)
