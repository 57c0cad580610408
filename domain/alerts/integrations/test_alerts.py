"""Explains a body: of a test alert, of one that is sent again, and of one that was only tried.

A test alert goes in the same way as any other; a dry run says what would become of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from domain.alerts.integration_type import IntegrationType
from domain.alerts.reading.formats import Reading, read_body
from domain.alerts.reading.incoming import IncomingAlert, ParsedBody
from domain.alerts.reading.mapping import FieldMapping
from domain.alerts.reading.parse_warnings import parse_warnings_of
from domain.alerts.reading.times import written_time
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake import preview, receive
from domain.alerts.storing.intake_result import IntakeResult
from domain.alerts.storing.lifecycle import ExistingOutcome, ItemOutcome
from domain.database.statements import HotConnection

#: A webhook may have thousands of items, and a page has room for some.
MOST_EXPLAINED = 50


@dataclass(frozen=True, kw_only=True)
class ExplainedAlert:
    """One alert of a body: how it was read."""

    title: str
    severity: str
    severity_reason: str
    is_over: bool
    fields: tuple[tuple[str, str], ...]
    fingerprint: str | None
    fingerprint_source: str


@dataclass(frozen=True, kw_only=True)
class TrialAlert:
    """One alert of a test: how it was read, and what became of it or would."""

    read: ExplainedAlert
    #: The number and the title of the alert that it touched; no number if there is none yet.
    iid: int | None
    title: str
    action: str


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """What a test delivery did, or would do."""

    alerts: tuple[TrialAlert, ...]
    #: How many more there are than are explained.
    more: int
    parse_warnings: tuple[str, ...]
    #: Empty if nothing was stored.
    delivery_id: int | None


def send_trial(
    delivery: InboundDelivery, mapping: FieldMapping, *, hot: HotConnection, reading: Reading
) -> TrialResult:
    """Store the body as a delivery and explain it; raise as a receiver would."""
    parsed = _read(delivery, mapping, reading=reading)
    result = receive(parsed, delivery, hot=hot)
    became = ((item.iid, item.title, item.action.value) for item in result.by_item)
    return _result(parsed, became, delivery_id=result.delivery_id)


def rehearse(
    delivery: InboundDelivery, mapping: FieldMapping, *, hot: HotConnection, reading: Reading
) -> TrialResult:
    """Explain what would become of the body, and store nothing; raise as a receiver would."""
    parsed = _read(delivery, mapping, reading=reading)
    outcomes = preview(parsed.alerts, delivery.project_id, hot=hot)
    would = (_would(outcome, alert) for outcome, alert in zip(outcomes, parsed.alerts, strict=True))
    return _result(parsed, would, delivery_id=None)


def send_again(
    delivery: InboundDelivery,
    mapping: FieldMapping,
    *,
    earlier_id: int,
    hot: HotConnection,
    reading: Reading,
) -> IntakeResult:
    """Store a body that came before as a new delivery; raise as a receiver would."""
    parsed = _read(delivery, mapping, reading=reading)
    warnings = (f"Sent again: it first came as delivery {earlier_id}.", *parsed.parse_warnings)
    return receive(replace(parsed, parse_warnings=warnings), delivery, hot=hot)


def _read(delivery: InboundDelivery, mapping: FieldMapping, *, reading: Reading) -> ParsedBody:
    kind = IntegrationType(delivery.format)
    return read_body(
        delivery.body, kind, now=delivery.received_at, reading=reading, mapping=mapping
    )


def _would(outcome: ItemOutcome, alert: IncomingAlert) -> tuple[int | None, str, str]:
    if isinstance(outcome, ExistingOutcome):
        return outcome.iid, outcome.title, outcome.action.value
    return None, alert.title, outcome.action.value


def _result(
    parsed: ParsedBody,
    became: Iterable[tuple[int | None, str, str]],
    *,
    delivery_id: int | None,
) -> TrialResult:
    explained = parsed.alerts[:MOST_EXPLAINED]
    return TrialResult(
        alerts=tuple(
            TrialAlert(read=explain(alert), iid=iid, title=title, action=action)
            for alert, (iid, title, action) in zip(explained, became, strict=False)
        ),
        more=len(parsed.alerts) - len(explained),
        parse_warnings=tuple(parse_warnings_of(parsed)),
        delivery_id=delivery_id,
    )


def explain(alert: IncomingAlert) -> ExplainedAlert:
    """Return how an alert was read, in words."""
    named = (
        ("title", alert.title),
        ("description", alert.description),
        ("started", _time(alert.started_at)),
        ("ended", _time(alert.ended_at)),
        ("service", alert.service),
        ("monitoring tool", alert.monitoring_tool),
        ("hosts", ", ".join(alert.hosts)),
        ("environment", alert.environment),
        ("runbook", alert.runbook),
        ("query", alert.query),
        ("incident markdown", alert.markdown),
        ("address of the graph", alert.generator_url),
    )
    return ExplainedAlert(
        title=alert.title,
        severity=alert.severity.value,
        severity_reason=alert.severity_reason,
        is_over=alert.ended_at is not None,
        fields=tuple((name, value) for name, value in named if value),
        fingerprint=alert.fingerprint.hex() if alert.fingerprint else None,
        fingerprint_source=alert.fingerprint_source,
    )


def _time(moment: datetime | None) -> str | None:
    return written_time(moment).replace("T", " ").replace("Z", " UTC") if moment else None
