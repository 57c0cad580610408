"""Previews a mapping before it is saved: on its sample, and on the latest deliveries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.formats.base import Format, Reading
from domain.alerts.formats.registry import format_named
from domain.alerts.integrations.mapping_types import AlertReading, ComparedDelivery, ReadAlert
from domain.alerts.integrations.resolving import never_resolves, resolves_seldom
from domain.alerts.integrations.samples import MappingDraft
from domain.alerts.integrations.trials import explain
from domain.alerts.reading.incoming import (
    InvalidEvent,
    NoValidItem,
    ParsedBody,
    UnreadableBody,
)
from domain.alerts.reading.mapping import FieldMapping
from domain.alerts.reading.parse_warnings import parse_warnings_of
from models import Delivery

#: The number of deliveries that a preview reads, and their largest size in bytes.
_MOST_DELIVERIES = 20
_LARGEST_BODY = 256 * 1024


@dataclass(frozen=True, kw_only=True)
class SamplePreview:
    """The alert that a sample would open."""

    #: None if a rule drops the sample.
    alert: ReadAlert | None
    parse_warnings: tuple[str, ...]
    #: Why alerts that are read like this never resolve, if they do not.
    never_resolves: str | None
    #: What a recovery has to repeat to find its alert, if that is a lot.
    resolves_seldom: str | None


@dataclass(frozen=True, kw_only=True)
class MappingPreview:
    """What a proposed mapping would change, the newest delivery first."""

    comparisons: tuple[ComparedDelivery, ...]
    #: The number of alerts that the deliveries are reports of.
    present_groups: int
    proposed_groups: int

    @property
    def changed(self) -> int:
        """The number of deliveries that would be read differently."""
        return sum(each.present != each.proposed for each in self.comparisons)


def preview_on_sample(
    draft: MappingDraft, body_format: Format, *, now: datetime, reading: Reading
) -> SamplePreview:
    """Return the alert that the draft reads from its own sample."""
    parsed = body_format.parse(
        draft.sample.payload, now=now, reading=reading, mapping=draft.mapping
    )
    alert = next(iter(parsed.alerts), None)
    payload, flag = draft.sample.payload, reading.automatic_fingerprint
    return SamplePreview(
        alert=explain(alert) if alert else None,
        parse_warnings=tuple(parse_warnings_of(parsed)),
        never_resolves=never_resolves(draft.mapping, payload, automatic_fingerprint=flag),
        resolves_seldom=resolves_seldom(draft.mapping, payload),
    )


def preview_on_deliveries(
    integration_id: int,
    mappings: tuple[FieldMapping, FieldMapping],
    *,
    session: Session,
    reading: Reading,
) -> MappingPreview:
    """Compare the present mapping and the proposed one, in this order, on the latest deliveries.

    Test alerts, refused deliveries and large bodies are left out.
    """
    deliveries = _last_deliveries(integration_id, session=session)
    present, proposed = (_reread(deliveries, mapping, reading=reading) for mapping in mappings)
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


def _last_deliveries(integration_id: int, *, session: Session) -> Sequence[Delivery]:
    """Return the latest accepted deliveries of senders, the oldest first."""
    newest = session.scalars(
        select(Delivery)
        .where(
            Delivery.integration_id == integration_id,
            Delivery.status_code == HTTPStatus.OK,
            Delivery.is_test.is_(False),
            Delivery.body.is_not(None),
            Delivery.size <= _LARGEST_BODY,
        )
        .order_by(Delivery.id.desc())
        .limit(_MOST_DELIVERIES)
    ).all()
    return newest[::-1]


def _reread(
    deliveries: Sequence[Delivery], mapping: FieldMapping, *, reading: Reading
) -> tuple[AlertReading, ...]:
    parsed = [_read(delivery, mapping, reading=reading) for delivery in deliveries]
    alerts = [next(iter(each.alerts), None) if each else None for each in parsed]
    groups = _groups(alert.fingerprint if alert else None for alert in alerts)
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


def _read(delivery: Delivery, mapping: FieldMapping, *, reading: Reading) -> ParsedBody | None:
    """Return the alerts of a delivery, or None if a limit that was lowered now refuses it."""
    try:
        return format_named(delivery.format).read(
            delivery.body or b"", now=delivery.received_at, reading=reading, mapping=mapping
        )
    except (UnreadableBody, NoValidItem, InvalidEvent):
        return None


def _groups(fingerprints: Iterable[bytes | None]) -> list[int]:
    """Return a group number for each, in order of appearance; None is a group of its own."""
    numbers: dict[bytes, int] = {}
    found = []
    count = 0
    for fingerprint in fingerprints:
        if fingerprint is None or fingerprint not in numbers:
            count += 1
        number = count if fingerprint is None else numbers.setdefault(fingerprint, count)
        found.append(number)
    return found
