"""What alerts report, with the Markdown that their senders wrote for incidents."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.formats.base import Reading
from domain.alerts.formats.registry import FORMATS, format_named
from domain.alerts.reading.incoming import MissingAttributes, NoValidItem, Severity, UnreadableBody
from domain.types.base import columns_of
from models import Alert, Delivery

_SEVERITIES = tuple(Severity)
_WITH_MARKDOWN = tuple(each.name for each in FORMATS if each.has_markdown)


@dataclass(frozen=True, kw_only=True)
class AlertReport:
    """An alert as its last report describes it."""

    id: int
    iid: int
    title: str
    description: str | None
    severity: Severity
    service: str | None
    monitoring_tool: str | None
    hosts: tuple[str, ...]
    query: str | None
    started_at: datetime
    #: Only some formats have it, and only while the payload is stored.
    markdown: str | None


def read_reports(
    alert_ids: Iterable[int], *, session: Session, reading: Reading
) -> Mapping[int, AlertReport]:
    """Return the reports of alerts by id; each body is read once, and one is in memory at a time.

    Ids without an alert are left out.
    """
    alerts = session.scalars(select(Alert).where(Alert.id.in_(alert_ids))).all()
    markdown = _markdown_of(alerts, session=session, reading=reading)
    return {alert.id: _report(alert, markdown.get(alert.id)) for alert in alerts}


def _report(alert: Alert, markdown: str | None) -> AlertReport:
    return AlertReport(
        **columns_of(alert, AlertReport)
        | {
            "severity": _SEVERITIES[alert.severity],
            "hosts": tuple(alert.hosts.split("\n")) if alert.hosts else (),
            "query": alert.query or None,
        },
        markdown=markdown,
    )


def _markdown_of(
    alerts: Sequence[Alert], *, session: Session, reading: Reading
) -> Mapping[int, str]:
    by_delivery: dict[int, list[Alert]] = defaultdict(list)
    for alert in alerts:
        if alert.delivery_id is not None:
            by_delivery[alert.delivery_id].append(alert)
    with_markdown = session.scalars(
        select(Delivery.id).where(Delivery.id.in_(by_delivery), Delivery.format.in_(_WITH_MARKDOWN))
    ).all()
    found: dict[int, str] = {}
    for delivery_id in with_markdown:
        delivery = session.execute(
            select(Delivery.body, Delivery.format, Delivery.received_at).where(
                Delivery.id == delivery_id
            )
        ).one()
        body_format = format_named(delivery.format)
        value = body_format.stored_value(delivery.body, reading=reading)
        for alert in by_delivery[delivery_id]:
            with suppress(UnreadableBody, MissingAttributes, NoValidItem):
                item = body_format.only_item(value, alert.item_index)
                parsed = body_format.parse(item, now=delivery.received_at, reading=reading)
                markdown = next((each.markdown for each in parsed.alerts), None)
                if markdown is not None:
                    found[alert.id] = markdown
    return found
