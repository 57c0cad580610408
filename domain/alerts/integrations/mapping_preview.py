"""Previews a mapping before it is saved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from domain.alerts.deliveries import find_recent_delivery_sizes
from domain.alerts.formats.base import AlertFormat, ParserSettings
from domain.alerts.integrations.mapping_types import (
    AlertReading,
    ComparedDelivery,
    ReadMessage,
    ReportCounts,
    SamplePreview,
)
from domain.alerts.integrations.stored_reports import (
    StoredBody,
    count_reports,
    find_stored_bodies,
    read_reports,
)
from domain.alerts.integrations.trial_alerts import build_parsed_alert_resource
from domain.alerts.integrations.types import IntegrationView
from domain.alerts.parsing.incoming_alert import (
    IncomingAlert,
    InvalidEventError,
    MissingAttributesError,
    NoValidItemError,
    ParsedBody,
)
from domain.alerts.parsing.mapping import AlertField, FieldMapping
from domain.alerts.parsing.parse_warnings import collect_parse_warnings
from domain.alerts.parsing.payload_paths import format_path, has_path
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.questions import RULE_QUESTION
from domain.core.errors import InvalidError

_NO_RESOLUTION = (
    "Nothing resolves these alerts automatically: the sample has no end time, and no rule defines "
    "when an alert is resolved. The alerts stay open until a user resolves them."
)
_GUESSED_RULE = (
    "The rule for recoveries is a guess. If the tool sends other recoveries or none, users have to "
    "resolve the alerts."
)
_NO_GROUPING = (
    "Recoveries cannot resolve alerts: no fingerprint is mapped, and grouping by the rest of the "
    "payload is turned off. Choose a field for the fingerprint."
)
#: Field names that, together with a title, identify the service's own format.
_OWN_FORMAT_FIELDS = (
    AlertField.FINGERPRINT,
    AlertField.HOSTS,
    AlertField.MONITORING_TOOL,
    AlertField.START_TIME,
)
#: Maximum number of deliveries that are listed.
_MAX_SHOWN_DELIVERIES = 20


def explain_missing_resolution(
    mapping: FieldMapping, sample: Mapping[str, object], reading: ParserSettings
) -> str | None:
    """Explain why alerts never resolve with a mapping, or return None if they can resolve."""
    ends = mapping.paths.get(AlertField.END_TIME, ())
    if ends and not mapping.rules.resolved_when and not any(has_path(sample, end) for end in ends):
        source = mapping.sources[AlertField.END_TIME]
        return f"The sample has no {source}. Only recoveries with this value resolve alerts."
    has_end = bool(ends) or AlertField.END_TIME in sample
    if not has_end and not _is_own_format(sample) and not mapping.rules.resolved_when:
        is_known = RULE_QUESTION in mapping.rules.confirmed
        return None if is_known else _NO_RESOLUTION
    if not _has_fingerprint_field(mapping, sample) and not reading.automatic_fingerprint:
        return _NO_GROUPING
    return _GUESSED_RULE if mapping.rules.is_guess else None


def _is_own_format(sample: Mapping[str, object]) -> bool:
    """Return whether a sample is in the service's own format.

    In this format, recoveries have an end time.
    """
    return AlertField.TITLE in sample and any(each in sample for each in _OWN_FORMAT_FIELDS)


def _has_fingerprint_field(mapping: FieldMapping, sample: Mapping[str, object]) -> bool:
    places = (mapping.paths, mapping.rules.joins, sample)
    return any(AlertField.FINGERPRINT in place for place in places)


def _explain_rare_resolution(mapping: FieldMapping, sample: Mapping[str, object]) -> str | None:
    """Return a warning if a recovery must repeat most values of an alert to resolve the alert.

    Otherwise, return None.
    """
    if _has_fingerprint_field(mapping, sample) or not mapping.rules.resolved_when:
        return None
    rules = ", ".join(dict.fromkeys(format_path(rule.path) for rule in mapping.rules.resolved_when))
    return (
        f"No fingerprint is mapped, so a recovery resolves an alert only if all of its values "
        f"except {rules} and the times are the same. Choose a field that identifies the alert for "
        "the fingerprint."
    )


@dataclass(frozen=True, kw_only=True)
class MappingPreview:
    """The effects of a proposed mapping on recent deliveries, newest first."""

    comparisons: tuple[ComparedDelivery, ...]
    #: Counts for the deliveries with the current mapping, and with the proposed mapping.
    before: ReportCounts
    after: ReportCounts

    @property
    def displayed_comparisons(self) -> tuple[ComparedDelivery, ...]:
        """Comparisons to list on web pages and in the API."""
        return self.comparisons[:_MAX_SHOWN_DELIVERIES]

    @property
    def changed_delivery_count(self) -> int:
        """Number of deliveries that the proposed mapping would parse differently."""
        return sum(each.present != each.proposed for each in self.comparisons)


@dataclass(frozen=True, kw_only=True)
class MessageParser:
    """Parses messages about an alert, using a format and a mapping."""

    format: AlertFormat
    mapping: FieldMapping
    now: datetime
    reading: ParserSettings

    def parse(self, payload: Mapping[str, object], name: str = "sample") -> ParsedBody:
        """Return the alerts in a message.

        Raise InvalidError, which names the message, if it contains no valid alert.
        """
        try:
            body = self.format.build_sample_body(payload)
            return self.format.parse(body, now=self.now, reading=self.reading, mapping=self.mapping)
        except (InvalidEventError, MissingAttributesError, NoValidItemError) as error:
            raise InvalidError(str(error), field=name) from error

    def preview(self, messages: Messages) -> SamplePreview:
        """Return the alert that the first message opens, and the effects of the other messages.

        Raise InvalidError, which names the message, if a message contains no valid alert.
        """
        parsed, payload = self.parse(messages.firing), messages.firing
        alert = next(iter(parsed.alerts), None)
        warnings = collect_parse_warnings(parsed)
        if (count := len(parsed.alerts)) > 1:
            warnings.append(f"The sample contains {count:,} alerts. Only the first one is shown.")
        never_resolves, resolves_seldom = None, None
        if self.format.has_mapping and parsed.event is None:
            never_resolves = explain_missing_resolution(self.mapping, payload, self.reading)
            resolves_seldom = _explain_rare_resolution(self.mapping, payload)
        recovery = self._read_message("recovery", messages.recovery, alert)
        return SamplePreview(
            alert=build_parsed_alert_resource(alert) if alert else None,
            parse_warnings=tuple(warnings),
            never_resolves=None if recovery and recovery.resolves else never_resolves,
            resolves_seldom=resolves_seldom,
            repeat=self._read_message("repeat", messages.repeat, alert),
            recovery=recovery,
        )

    def _read_message(
        self, name: str, payload: Mapping[str, object] | None, first: IncomingAlert | None
    ) -> ReadMessage | None:
        """Return the changes that a repeat or recovery message makes to the alert.

        `first` is the alert that was read from the first message.
        """
        if payload is None:
            return None
        alert = next(iter(self.parse(payload, name).alerts), None)
        identity = alert.fingerprint if alert else None
        joins = bool(identity and first and identity == first.fingerprint)
        return ReadMessage(
            alert=build_parsed_alert_resource(alert) if alert else None,
            joins=joins,
            resolves=joins and alert is not None and alert.ended_at is not None,
            sentence=_describe_message(name, alert, first, joins=joins),
        )


def _describe_message(
    name: str, alert: IncomingAlert | None, first: IncomingAlert | None, *, joins: bool
) -> str:
    if alert is None:
        return f"The {name} is dropped, so it does not change the alert."
    is_over = alert.ended_at is not None
    if not joins:
        other = "does not resolve the alert" if is_over else "opens another alert"
        if alert.fingerprint is None:
            return f"The {name} {other}, because no value identifies the alert."
        source = alert.fingerprint_source
        reason = f"its value of {source} is different"
        if first and first.fingerprint_source != source:
            reason = f"it is identified by {source}, and the sample by {first.fingerprint_source}"
        return f"The {name} {other}, because {reason}."
    if name == "recovery":
        return (
            "The recovery resolves the alert."
            if is_over
            else "The recovery does not resolve the alert: no rule and no end time applies to it."
        )
    return (
        "The repeat resolves the alert, although the problem is not over."
        if is_over
        else "The repeat joins the alert."
    )


def preview_deliveries(
    integration: IntegrationView,
    proposed_mapping: FieldMapping,
    *,
    session: Session,
    reading: ParserSettings,
) -> MappingPreview:
    """Compare the results of the current and the proposed mapping for the latest deliveries.

    Test alerts, rejected deliveries and large bodies are excluded.
    """
    mappings = (integration.mapping, proposed_mapping)
    recent = find_recent_delivery_sizes(integration.id, session=session)
    bodies = find_stored_bodies(recent, session=session, reading=reading)
    present, proposed = (_read_deliveries(bodies, mapping, reading=reading) for mapping in mappings)
    comparisons = tuple(
        ComparedDelivery(
            delivery_id=body.id, received_at=body.received_at, present=before, proposed=after
        )
        for body, before, after in zip(bodies, present, proposed, strict=True)
    )
    before, after = (
        count_reports(read_reports(bodies, mapping, reading=reading)) for mapping in mappings
    )
    return MappingPreview(comparisons=comparisons[::-1], before=before, after=after)


def _read_deliveries(
    bodies: Sequence[StoredBody], mapping: FieldMapping, *, reading: ParserSettings
) -> tuple[AlertReading, ...]:
    groups: dict[object, int] = {}
    found = []
    for body in bodies:
        parsed = body.read(mapping, reading=reading)
        alert = next(iter(parsed.alerts), None) if parsed else None
        # A delivery without a fingerprint has its own group.
        fingerprint = alert.fingerprint if alert else None
        group = object() if fingerprint is None else fingerprint
        found.append(
            AlertReading(
                title=alert.title if alert else "",
                severity=alert.severity.value if alert else "unknown",
                ended_at=alert.ended_at if alert else None,
                is_dropped=bool(parsed and parsed.dropped and not parsed.alerts),
                group=groups.setdefault(group, len(groups) + 1),
            )
        )
    return tuple(found)
