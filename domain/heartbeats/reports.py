"""The reports from which the alerts of heartbeats are made, as a sender would write them."""

from dataclasses import dataclass, field
from datetime import datetime

import orjson

from domain.alerts.formats.base import Reading
from domain.alerts.formats.registry import OWN_FORMAT
from domain.alerts.reading import fingerprint
from domain.alerts.reading.incoming import ParsedBody
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.clock import start_stopwatch, written
from domain.durations import duration_text
from domain.heartbeats.schedules import Schedule
from domain.heartbeats.states import AlertAction, Decision, Problem

#: What deliveries of heartbeats have as their sender.
SENDER = "heartbeat"
#: So much of the last body is shown in the description of an alert, in characters.
_LONGEST_EXCERPT = 500
_READING = Reading(nesting_limit=10, automatic_fingerprint=True)

_TITLES = {
    Problem.MISSED: "Heartbeat missed: {}",
    Problem.FAILED: "Heartbeat failed: {}",
    Problem.UNFINISHED: "Heartbeat did not finish: {}",
}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a report says of a heartbeat."""

    id: int
    project_id: int
    name: str
    description: str
    severity: str
    environment: str | None
    schedule: Schedule
    last_ping_at: datetime | None
    last_exit_status: int | None
    #: The beginning of the last body that it sent, if that ended in a failure.
    log: bytes = field(default=b"", repr=False)


def fingerprint_of(heartbeat_id: int) -> bytes:
    """Return the fingerprint of the alerts of a heartbeat."""
    return fingerprint.of_value(_identity(heartbeat_id))


def _identity(heartbeat_id: int) -> str:
    return f"heartbeat {heartbeat_id}"


def report(
    subject: Subject, decision: Decision, now: datetime
) -> tuple[ParsedBody, InboundDelivery]:
    """Return the report that opens or resolves the alert of a heartbeat, read and to be stored."""
    body = orjson.dumps(_content(subject, decision, now))
    delivery = InboundDelivery(
        project_id=subject.project_id,
        integration_id=None,
        format=OWN_FORMAT.name,
        sender=SENDER,
        body=body,
        size=len(body),
        received_at=now,
        stopwatch=start_stopwatch(),
    )
    return OWN_FORMAT.read(body, now=now, reading=_READING), delivery


def _content(subject: Subject, decision: Decision, now: datetime) -> dict[str, object]:
    content: dict[str, object] = {
        "title": _TITLES[decision.problem or Problem.MISSED].format(subject.name),
        "description": _description(subject, decision, now),
        "severity": subject.severity,
        "monitoring_tool": "Gatebell heartbeat",
        "fingerprint": _identity(subject.id),
        "heartbeat": subject.name,
        "heartbeat_id": subject.id,
    }
    if subject.environment:
        content["platform_environment_name"] = subject.environment
    if decision.action is AlertAction.RESOLVE:
        content["end_time"] = written(now)
    elif decision.problem is not Problem.FAILED:
        content["start_time"] = written(decision.since or now)
    if subject.last_exit_status is not None:
        content["exit_status"] = subject.last_exit_status
    return content


def _description(subject: Subject, decision: Decision, now: datetime) -> str:
    if decision.action is AlertAction.RESOLVE:
        return "It reported again."
    parts = [_sentence(subject, decision, now), subject.description, _excerpt(subject.log)]
    return "\n\n".join(part for part in parts if part)


def _sentence(subject: Subject, decision: Decision, now: datetime) -> str:
    last = subject.last_ping_at
    heard = f"The last ping arrived at {_time(last)}." if last else "There was no ping yet."
    grace = duration_text(subject.schedule.grace)
    if decision.problem is Problem.FAILED:
        status = subject.last_exit_status
        return (
            "It reported a failure." if status is None else f"It ended with exit status {status}."
        )
    if decision.problem is Problem.UNFINISHED:
        return f"It sent a start, and no end within its grace time of {grace}. {heard}"
    expected = _time((decision.since or now) - subject.schedule.grace)
    return f"A ping was expected by {expected}, at most {grace} late. {heard}"


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _excerpt(log: bytes) -> str:
    text = log.decode(errors="replace").strip()
    return text if len(text) <= _LONGEST_EXCERPT else f"{text[:_LONGEST_EXCERPT]}…"
