"""Test alerts, dry runs, and stored bodies that are sent again.

A test alert is stored in the same way as any other; a dry run stores nothing. Both explain how each
alert of the body was read and what storing it does.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from domain.alerts.formats.base import Reading
from domain.alerts.formats.registry import format_named
from domain.alerts.integrations.delivery_types import TestAlertResult, TestedAlert
from domain.alerts.integrations.mapping_types import ReadAlert
from domain.alerts.reading.incoming import IncomingAlert, ParsedBody
from domain.alerts.reading.parse_warnings import parse_warnings_of
from domain.alerts.reading.times import written_time
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake import preview, receive
from domain.alerts.storing.intake_result import IntakeResult
from domain.alerts.storing.lifecycle import ExistingOutcome, ItemOutcome
from domain.database.statements import KeptConnection

#: Alerts explained on a page; a webhook may have thousands.
MOST_EXPLAINED = 50


def send_test_alert(
    delivery: InboundDelivery, *, connection: KeptConnection, reading: Reading
) -> TestAlertResult:
    """Store the body as a delivery and explain it; raise the errors of a receiver."""
    parsed = _read(delivery, reading=reading)
    result = receive(parsed, delivery, connection=connection)
    done = ((item.iid, item.title, item.action.value) for item in result.by_item)
    return _result(parsed, done, delivery_id=result.delivery_id)


def dry_run(
    delivery: InboundDelivery, *, connection: KeptConnection, reading: Reading
) -> TestAlertResult:
    """Explain what storing the body would do, and store nothing; raise the errors of a receiver."""
    parsed = _read(delivery, reading=reading)
    outcomes = preview(parsed.alerts, delivery, connection=connection)
    would = (
        _preview_of(outcome, alert) for outcome, alert in zip(outcomes, parsed.alerts, strict=True)
    )
    return _result(parsed, would, delivery_id=None)


def send_again(
    delivery: InboundDelivery,
    *,
    earlier_id: int,
    connection: KeptConnection,
    reading: Reading,
) -> IntakeResult:
    """Store the body of an earlier delivery as a new one; raise the errors of a receiver."""
    parsed = _read(delivery, reading=reading)
    warnings = (f"Sent again: first received as delivery {earlier_id}.", *parsed.parse_warnings)
    return receive(replace(parsed, parse_warnings=warnings), delivery, connection=connection)


def _read(delivery: InboundDelivery, *, reading: Reading) -> ParsedBody:
    return format_named(delivery.format).read(
        delivery.body,
        now=delivery.received_at,
        reading=reading,
        mapping=delivery.mapping,
    )


def _preview_of(outcome: ItemOutcome, alert: IncomingAlert) -> tuple[int | None, str, str]:
    if isinstance(outcome, ExistingOutcome):
        return outcome.iid, outcome.title, outcome.action.value
    return None, alert.title, outcome.action.value


def _result(
    parsed: ParsedBody,
    results: Iterable[tuple[int | None, str, str]],
    *,
    delivery_id: int | None,
) -> TestAlertResult:
    explained = parsed.alerts[:MOST_EXPLAINED]
    return TestAlertResult(
        alerts=tuple(
            TestedAlert(read=explain(alert), iid=iid, title=title, action=action)
            for alert, (iid, title, action) in zip(explained, results, strict=False)
        ),
        more=len(parsed.alerts) - len(explained),
        parse_warnings=tuple(parse_warnings_of(parsed)),
        delivery_id=delivery_id,
    )


def explain(alert: IncomingAlert) -> ReadAlert:
    """Return how an alert was read."""
    named = (
        ("title", alert.title),
        ("description", alert.description),
        ("started", _time(alert.started_at)),
        ("ended", _time(alert.ended_at)),
        ("service", alert.service),
        ("monitoring_tool", alert.monitoring_tool),
        ("hosts", ", ".join(alert.hosts)),
        ("environment", alert.environment),
        ("runbook", alert.runbook),
        ("query", alert.query),
        ("incident_markdown", alert.markdown),
        ("graph_URL", alert.generator_url),
    )
    return ReadAlert(
        title=alert.title,
        severity=alert.severity.value,
        severity_reason=alert.severity_reason,
        is_over=alert.ended_at is not None,
        fields={name: value for name, value in named if value},
        fingerprint=alert.fingerprint.hex() if alert.fingerprint else None,
        fingerprint_source=alert.fingerprint_source,
    )


def _time(moment: datetime | None) -> str | None:
    return written_time(moment).replace("T", " ").replace("Z", " UTC") if moment else None
