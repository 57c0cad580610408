"""Previews a mapping before it is saved."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.formats.base import AlertFormat, ParserSettings
from domain.alerts.formats.registry import get_format
from domain.alerts.integrations.mapping_types import AlertReading, ComparedDelivery, ReadAlert
from domain.alerts.integrations.samples import (
    MappingDraft,
)
from domain.alerts.integrations.trial_alerts import explain_parsed_alert
from domain.alerts.reading.incoming import (
    InvalidEventError,
    NoValidItemError,
    ParsedBody,
    UnreadableBodyError,
)
from domain.alerts.reading.mapping import AlertField, FieldMapping
from domain.alerts.reading.parse_warnings import collect_parse_warnings
from domain.alerts.reading.paths import format_path
from models import Delivery

_NO_RESOLUTION = (
    "Nothing resolves these alerts automatically: the sample has no end time, and no rule defines "
    "when an alert is resolved. The alerts stay open until a user resolves them."
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
#: Maximum number of deliveries that a preview reads, and their maximum size in bytes.
_MAX_DELIVERIES = 20
_MAX_BODY_BYTES = 256 * 1024


def explain_missing_resolution(
    mapping: FieldMapping, sample: Mapping[str, object], *, automatic_fingerprint: bool
) -> str | None:
    """Explain why alerts never resolve with a mapping, or return None if they can resolve."""
    has_end = AlertField.END_TIME in mapping.paths or AlertField.END_TIME in sample
    if not has_end and not _is_own_format(sample) and not mapping.rules.resolved_when:
        return _NO_RESOLUTION
    if not _has_fingerprint_field(mapping, sample) and not automatic_fingerprint:
        return _NO_GROUPING
    return None


def _is_own_format(sample: Mapping[str, object]) -> bool:
    """Return whether a sample is in the service's own format, whose recoveries have an end time."""
    return AlertField.TITLE in sample and any(each in sample for each in _OWN_FORMAT_FIELDS)


def _has_fingerprint_field(mapping: FieldMapping, sample: Mapping[str, object]) -> bool:
    places = (mapping.paths, mapping.rules.joins, sample)
    return any(AlertField.FINGERPRINT in place for place in places)


def explain_rare_resolution(mapping: FieldMapping, sample: Mapping[str, object]) -> str | None:
    """Return a warning if a recovery must repeat most values of an alert to resolve it.

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
class SamplePreview:
    """The alert that a sample would open."""

    #: The alert, or None if a rule drops the sample.
    alert: ReadAlert | None
    parse_warnings: tuple[str, ...]
    #: Reason why alerts with this mapping never resolve, or None if they can resolve.
    never_resolves: str | None
    #: Warning that a recovery must repeat most values of an alert to resolve it, or None.
    resolves_seldom: str | None


@dataclass(frozen=True, kw_only=True)
class MappingPreview:
    """The effects of a proposed mapping on recent deliveries, newest first."""

    comparisons: tuple[ComparedDelivery, ...]
    #: Number of alerts into which the current mapping groups the deliveries.
    present_groups: int
    proposed_groups: int

    @property
    def changed(self) -> int:
        """Number of deliveries that would be read differently."""
        return sum(each.present != each.proposed for each in self.comparisons)


def preview_sample(
    draft: MappingDraft, body_format: AlertFormat, *, now: datetime, reading: ParserSettings
) -> SamplePreview:
    """Return the alert that a draft reads from its own sample."""
    parsed = body_format.parse(
        draft.sample.payload, now=now, reading=reading, mapping=draft.mapping
    )
    alert = next(iter(parsed.alerts), None)
    payload, flag = draft.sample.payload, reading.automatic_fingerprint
    return SamplePreview(
        alert=explain_parsed_alert(alert) if alert else None,
        parse_warnings=tuple(collect_parse_warnings(parsed)),
        never_resolves=explain_missing_resolution(
            draft.mapping, payload, automatic_fingerprint=flag
        ),
        resolves_seldom=explain_rare_resolution(draft.mapping, payload),
    )


def preview_deliveries(
    integration_id: int,
    mappings: tuple[FieldMapping, FieldMapping],
    *,
    session: Session,
    reading: ParserSettings,
) -> MappingPreview:
    """Compare the results of the current and the proposed mapping for the latest deliveries.

    `mappings` contains the current mapping first. Test alerts, rejected deliveries and large bodies
    are excluded.
    """
    deliveries = _find_last_deliveries(integration_id, session=session)
    present, proposed = (
        _parse_deliveries(deliveries, mapping, reading=reading) for mapping in mappings
    )
    comparisons = tuple(
        ComparedDelivery(
            delivery_id=delivery.id,
            received_at=delivery.received_at,
            present=before,
            proposed=after,
        )
        for delivery, before, after in zip(deliveries, present, proposed, strict=True)
    )
    return MappingPreview(
        comparisons=comparisons[::-1],
        present_groups=len({each.group for each in present}),
        proposed_groups=len({each.group for each in proposed}),
    )


def _find_last_deliveries(integration_id: int, *, session: Session) -> Sequence[Delivery]:
    """Return the latest accepted deliveries from senders, oldest first."""
    newest = session.scalars(
        select(Delivery)
        .where(
            Delivery.integration_id == integration_id,
            Delivery.status_code == HTTPStatus.OK,
            Delivery.is_test.is_(False),
            Delivery.body.is_not(None),
            Delivery.size <= _MAX_BODY_BYTES,
        )
        .order_by(Delivery.id.desc())
        .limit(_MAX_DELIVERIES)
    ).all()
    return newest[::-1]


def _parse_deliveries(
    deliveries: Sequence[Delivery], mapping: FieldMapping, *, reading: ParserSettings
) -> tuple[AlertReading, ...]:
    parsed = [_parse_delivery(delivery, mapping, reading=reading) for delivery in deliveries]
    alerts = [next(iter(each.alerts), None) if each else None for each in parsed]
    groups = _number_fingerprint_groups(alert.fingerprint if alert else None for alert in alerts)
    return tuple(
        AlertReading(
            title=alert.title if alert else "",
            severity=alert.severity.value if alert else "unknown",
            ended_at=alert.ended_at if alert else None,
            is_dropped=bool(each and each.dropped and not each.alerts),
            group=group,
        )
        for each, alert, group in zip(parsed, alerts, groups, strict=True)
    )


def _parse_delivery(
    delivery: Delivery, mapping: FieldMapping, *, reading: ParserSettings
) -> ParsedBody | None:
    """Return the alerts in a delivery.

    Return None if the delivery can no longer be parsed, for example because a limit was lowered.
    """
    try:
        return get_format(delivery.format).read(
            delivery.body or b"", now=delivery.received_at, reading=reading, mapping=mapping
        )
    except (UnreadableBodyError, NoValidItemError, InvalidEventError):
        return None


def _number_fingerprint_groups(fingerprints: Iterable[bytes | None]) -> list[int]:
    """Return a group number for each fingerprint, in order of appearance.

    Each None has its own group.
    """
    numbers: dict[bytes, int] = {}
    found = []
    count = 0
    for fingerprint in fingerprints:
        if fingerprint is None or fingerprint not in numbers:
            count += 1
        number = count if fingerprint is None else numbers.setdefault(fingerprint, count)
        found.append(number)
    return found
