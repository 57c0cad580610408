"""Sends a test alert: the same way in as any other, and an explanation on the way out."""

from dataclasses import dataclass
from datetime import datetime

from domain.alerts.formats import Reading, read_body
from domain.alerts.incoming import IncomingAlert
from domain.alerts.intake import ReceiptItem, receive, remarks_of
from domain.alerts.integrations import IntegrationType
from domain.alerts.parcel import Parcel
from domain.hot import HotConnection


@dataclass(frozen=True, kw_only=True)
class TrialAlert:
    """One alert of a test: what was understood, and what became of it."""

    iid: int
    title: str
    action: str
    fields: tuple[tuple[str, str], ...]
    severity: str
    severity_reason: str
    fingerprint_source: str


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """What a test delivery did."""

    alerts: tuple[TrialAlert, ...]
    remarks: tuple[str, ...]


def send_trial(parcel: Parcel, *, hot: HotConnection, reading: Reading) -> TrialResult:
    """Store the body as a delivery and explain it; raise as a receiver would."""
    parsed = read_body(
        parcel.body, IntegrationType(parcel.format), now=parcel.received_at, reading=reading
    )
    receipt = receive(parsed, parcel, hot=hot)
    by_title = {alert.title: alert for alert in reversed(parsed.alerts)}
    explained = (
        _explained(item, by_title.get(item.title, parsed.alerts[0])) for item in receipt.items
    )
    return TrialResult(alerts=tuple(explained), remarks=tuple(remarks_of(parsed)))


def _explained(item: ReceiptItem, alert: IncomingAlert) -> TrialAlert:
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
    )
    return TrialAlert(
        iid=item.iid,
        title=item.title,
        action=item.action.value,
        fields=tuple((name, value) for name, value in named if value),
        severity=alert.severity.value,
        severity_reason=alert.severity_reason,
        fingerprint_source=alert.fingerprint_source,
    )


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat(sep=" ", timespec="seconds") if moment else None
