"""Test alerts, dry runs, and resent delivery bodies.

A test alert is stored like any other alert, while a dry run stores nothing. Both explain how each
alert in the body is parsed, and the effects of storing it.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from domain.alerts.deliveries import DeliveryPeriodQuery, DeliverySelection, StoredDelivery
from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import get_format
from domain.alerts.integrations.mapping_types import JsonText, ReadAlert
from domain.alerts.parsing.incoming_alert import IncomingAlert, ParsedBody
from domain.alerts.parsing.parse_warnings import collect_parse_warnings
from domain.alerts.parsing.times import format_utc_time
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake import preview_outcomes, store_alerts
from domain.alerts.storing.intake_result import IntakeResult
from domain.alerts.storing.lifecycle import Action, ItemOutcome, StoredAlertOutcome
from domain.core.database.pagination import MAX_ID
from domain.core.database.statements import StatementConnection
from domain.core.types.base import Body, RequestTime, Resource, build_choices_schema
from domain.core.types.pagination import KeysetQuery

#: Selections by their API names, which differ from the names on web pages.
SELECTIONS_BY_NAME = {
    "all": DeliverySelection.ALL,
    "accepted": DeliverySelection.ACCEPTED,
    "refused": DeliverySelection.REFUSED,
    "warnings": DeliverySelection.WARNINGS,
    "senders": DeliverySelection.SENDERS,
    "tests": DeliverySelection.TESTS,
}
_ActionName = Annotated[str, build_choices_schema(*Action)]
#: Maximum number of alerts that are explained. A webhook may contain thousands.
MAX_EXPLAINED_ALERTS = 50


class DeliveryQuery(DeliveryPeriodQuery, KeysetQuery):
    """Query parameters for a list of an integration's deliveries, newest first."""

    show: Literal["all", "accepted", "refused", "warnings", "senders", "tests"] = Field(
        default="all",
        description=(
            "Deliveries to list. `refused` lists rejected deliveries, and `senders` lists all "
            "deliveries except test alerts."
        ),
    )
    status: Annotated[int, Field(ge=100, le=599)] | None = Field(
        default=None, description="Status code of the response to the sender."
    )


class DeliveredAlert(Resource):
    """An alert that an item of a delivery opened or changed."""

    iid: int
    title: str = Field(description="Current title of the alert.")
    action: _ActionName
    item: int = Field(description="Position of the item in the body, starting at 1.")
    web_url: str


class DeliveryDetail(StoredDelivery):
    """A delivery with its body and the alerts that it changed."""

    alerts: tuple[DeliveredAlert, ...] = Field(
        description="Alerts that the delivery opened or changed, at most 200."
    )


class ReplayBody(Body):
    """The period from which rejected deliveries are replayed."""

    since: RequestTime = Field(description="Start of the period in which the deliveries arrived.")
    until: RequestTime | None = Field(
        default=None,
        description="End of the period in which the deliveries arrived. Defaults to the current "
        "time.",
    )
    after: Annotated[int, Field(ge=0, le=MAX_ID)] = Field(
        default=0,
        description="Value of `next_after` in the previous response, to continue the replay.",
    )


class ReplayResult(Resource):
    """The deliveries that a replay created or rejected again."""

    replayed: tuple[int, ...] = Field(description="IDs of the new deliveries.")
    still_refused: tuple[int, ...] = Field(
        description="IDs of the deliveries that were rejected again. The new rejections are not "
        "stored."
    )
    next_after: int | None = Field(
        description="Value of `after` for the next request. Null if there are no more deliveries."
    )


class TestAlertBody(Body):
    """A test alert to send or preview."""

    #: Attribute that prevents pytest from collecting the class as a test case.
    __test__ = False

    payload: JsonText | None = Field(
        default=None,
        description="Payload as a sender would post it. Defaults to the integration's sample, or "
        "to an example in its format.",
    )
    dry_run: bool = Field(
        default=False, description="True to return the expected result without storing anything."
    )


class TestedAlert(Resource):
    """An alert in a test: its parsed values, and the result of storing it."""

    iid: int | None = Field(
        description="Number of the alert. Null for an alert that a dry run would open."
    )
    title: str
    action: _ActionName
    read: ReadAlert


class TestAlertResult(Resource):
    """The delivery and the alerts that result from a test alert."""

    __test__ = False

    delivery_id: int | None = Field(description="ID of the delivery. Null for a dry run.")
    alerts: tuple[TestedAlert, ...] = Field(description="Alerts in the body, at most 50.")
    more: int = Field(description="Number of additional alerts in the body.")
    parse_warnings: tuple[str, ...]


def send_test_alert(
    delivery: InboundDelivery, *, connection: StatementConnection, reading: ParserSettings
) -> TestAlertResult:
    """Store the body as a test delivery, and explain the result.

    Raise the same errors as a receiver.
    """
    parsed = _parse_body(delivery, reading=reading)
    result = store_alerts(parsed, delivery, connection=connection)
    done = ((item.iid, item.title, item.action.value) for item in result.by_item)
    return _build_result(parsed, done, delivery_id=result.delivery_id)


def preview_test_alert(
    delivery: InboundDelivery, *, connection: StatementConnection, reading: ParserSettings
) -> TestAlertResult:
    """Explain the effects of storing the body, without storing anything.

    Raise the same errors as a receiver.
    """
    parsed = _parse_body(delivery, reading=reading)
    outcomes = preview_outcomes(parsed.alerts, delivery, connection=connection)
    would = (
        _summarize_outcome(outcome, alert)
        for outcome, alert in zip(outcomes, parsed.alerts, strict=True)
    )
    return _build_result(parsed, would, delivery_id=None)


def store_resent_body(
    delivery: InboundDelivery,
    *,
    earlier_id: int,
    connection: StatementConnection,
    reading: ParserSettings,
) -> IntakeResult:
    """Store the body of an earlier delivery as a new delivery.

    Raise the same errors as a receiver.
    """
    parsed = _parse_body(delivery, reading=reading)
    warnings = (f"Sent again from delivery {earlier_id}.", *parsed.parse_warnings)
    return store_alerts(replace(parsed, parse_warnings=warnings), delivery, connection=connection)


def _parse_body(delivery: InboundDelivery, *, reading: ParserSettings) -> ParsedBody:
    return get_format(delivery.format).read(
        delivery.body,
        now=delivery.received_at,
        reading=reading,
        mapping=delivery.mapping,
    )


def _summarize_outcome(outcome: ItemOutcome, alert: IncomingAlert) -> tuple[int | None, str, str]:
    if isinstance(outcome, StoredAlertOutcome):
        return outcome.iid, outcome.title, outcome.action.value
    return None, alert.title, outcome.action.value


def _build_result(
    parsed: ParsedBody, results: Iterable[tuple[int | None, str, str]], *, delivery_id: int | None
) -> TestAlertResult:
    explained = parsed.alerts[:MAX_EXPLAINED_ALERTS]
    return TestAlertResult(
        alerts=tuple(
            TestedAlert(
                read=build_parsed_alert_resource(alert), iid=iid, title=title, action=action
            )
            for alert, (iid, title, action) in zip(explained, results, strict=False)
        ),
        more=len(parsed.alerts) - len(explained),
        parse_warnings=tuple(collect_parse_warnings(parsed)),
        delivery_id=delivery_id,
    )


def build_parsed_alert_resource(alert: IncomingAlert) -> ReadAlert:
    """Convert a parsed alert to a resource with its formatted fields."""
    named = (
        ("title", alert.title),
        ("description", alert.description),
        ("started", _format_time(alert.started_at)),
        ("ended", _format_time(alert.ended_at)),
        ("service", alert.service),
        ("monitoring_tool", alert.monitoring_tool),
        ("hosts", ", ".join(alert.hosts)),
        ("environment", alert.environment),
        ("runbook", alert.runbook),
        ("query", alert.query),
        ("incident_markdown", alert.markdown),
        ("source", alert.generator_url),
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


def _format_time(moment: datetime | None) -> str | None:
    return format_utc_time(moment).replace("T", " ").replace("Z", " UTC") if moment else None
