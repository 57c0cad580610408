"""Evaluates heartbeats that are due, and opens or resolves their alerts.

The background worker does so every second. A request with a ping that changes the state does so
immediately. Both lock the row first, so that an alert is opened only once and concurrent pings are
taken into account. Workers skip locked rows. A ping waits for the lock, so that its response
follows the change.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from time import perf_counter_ns
from typing import Any, NamedTuple

import orjson
from sqlalchemy import BigInteger, Executable, Row, bindparam, case, insert, select, update

from domain.access.features import AccessLevel
from domain.alerts.formats.base import Reading
from domain.alerts.formats.registry import OWN_FORMAT
from domain.alerts.reading import fingerprint
from domain.alerts.reading.incoming import ParsedBody
from domain.alerts.receiving.receivers import is_taken_over
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake import receive_within
from domain.alerts.storing.lifecycle import RESOLVED
from domain.core.clock import date_and_time, written
from domain.core.database.statements import KeptConnection, columns_for
from domain.core.hosts import Unreachable, times_unreachable
from domain.core.schedule_conditions import NOW, in_milliseconds, moments
from domain.core.types.base import columns_of
from domain.heartbeats.states import (
    AlertAction,
    Decision,
    Facts,
    HeartbeatState,
    PingKind,
    Problem,
    Schedule,
    decide,
    milliseconds,
    moment_of,
)
from models import Alert, Heartbeat, HeartbeatPing, Project
from models.base import UTCDateTime

#: Sender of the deliveries of heartbeats.
SENDER = "heartbeat"
#: Maximum length of the last body in the description of an alert, in characters.
_LONGEST_EXCERPT = 500
_READING = Reading(nesting_limit=10, automatic_fingerprint=True)

_TITLES = {
    Problem.MISSED: "Heartbeat missed: {}",
    Problem.FAILED: "Heartbeat failed: {}",
    Problem.UNFINISHED: "Heartbeat did not finish: {}",
}
#: Pause before a heartbeat is evaluated again if its project does not accept alerts.
_CLOSED_PAUSE = timedelta(minutes=1)
#: Sender of the log entries that the service itself adds.
SENDER_OF_LOG = "Gatebell"
UNHEARD = (
    "Gatebell could not receive pings from {began_at} until {ended_at}, so no alert was opened for "
    "a missing ping. The next ping is expected by {expected_at}, with a grace time of {late}."
)


def fingerprint_of(heartbeat_id: int) -> bytes:
    """Return the fingerprint of a heartbeat's alerts."""
    return fingerprint.of_value(_identity(heartbeat_id))


def _identity(heartbeat_id: int) -> str:
    return f"heartbeat {heartbeat_id}"


class FoundHeartbeat(NamedTuple):
    """A heartbeat, as selected by `ONE`."""

    id: int
    project_id: int
    name: str
    description: str
    severity: str
    environment: str | None
    every: timedelta | None
    cron: str | None
    time_zone: str
    grace: timedelta
    state: str
    has_alert: bool
    counted_from: datetime | None
    started_ms: int | None
    last_ping_at: datetime | None
    last_ping_kind: str | None
    last_exit_status: int | None
    down_since: datetime | None
    due_ms: int | None
    takes_alerts: bool


ONE = (
    select(
        *columns_for(
            FoundHeartbeat._fields,
            {"": Heartbeat},
            takes_alerts=case(
                (Project.archived_at.is_not(None), False),
                (Project.monitor_access_level == AccessLevel.DISABLED.value, False),
                (is_taken_over(Heartbeat.project_id), False),
                else_=True,
            ),
        )
    )
    .join(Project, Project.id == Heartbeat.project_id)
    .where(
        Heartbeat.id == bindparam("heartbeat_id"),
        Heartbeat.due_ms <= in_milliseconds(NOW),
        Project.deleted_at.is_(None),
    )
    .with_for_update(of=Heartbeat)
)
_ONE_THAT_IS_FREE = ONE.with_for_update(of=Heartbeat, skip_locked=True)

_DUE = (
    select(Heartbeat.id)
    .join(Project, Project.id == Heartbeat.project_id)
    .where(Heartbeat.due_ms <= in_milliseconds(NOW), Project.deleted_at.is_(None))
)
_LONGEST_DUE = _DUE.order_by(Heartbeat.due_ms).limit(bindparam("most"))
#: Condition that is true if any heartbeat is due for evaluation.
HEARTBEATS_ARE_DUE = _DUE.exists()

_LAST_BODY = (
    select(HeartbeatPing.body)
    .where(HeartbeatPing.heartbeat_id == bindparam("heartbeat_id"))
    .order_by(HeartbeatPing.id.desc())
    .limit(1)
)

#: Query for the last alert of a heartbeat. With `+ 0`, the planner can only use the indexes that
#: begin with the fingerprint (migration 0051).
_ITS_ALERT = (
    select(Alert.status, Alert.ended_at)
    .where(
        Alert.project_id + 0 == bindparam("project_id"),
        Alert.fingerprint == bindparam("fingerprint"),
    )
    .order_by(Alert.id.desc())
    .limit(1)
)

_SETTLE = (
    update(Heartbeat)
    .where(Heartbeat.id == bindparam("heartbeat_id"))
    .values(
        state=bindparam("new_state"),
        has_alert=bindparam("new_has_alert"),
        due_ms=bindparam("new_due_ms", type_=BigInteger()),
        down_since=bindparam("new_down_since", type_=UTCDateTime()),
    )
)

_COUNT_AGAIN = (
    update(Heartbeat)
    .where(Heartbeat.id == bindparam("heartbeat_id"))
    .values(
        counted_from=bindparam("new_counted_from", type_=UTCDateTime()),
        started_ms=None,
        started_rid=None,
    )
)
_LOG = insert(HeartbeatPing)

_POSTPONE = (
    update(Heartbeat)
    .where(Heartbeat.id == bindparam("heartbeat_id"))
    .values(due_ms=bindparam("new_due_ms", type_=BigInteger()))
)


def due_heartbeats(*, connection: KeptConnection, now: datetime, most: int) -> Sequence[int]:
    """Return the IDs of heartbeats that are due for evaluation, longest overdue first."""
    found = connection.look_up(_LONGEST_DUE, {**moments(now), "most": most})
    return [row[0] for row in found]


def settle(heartbeat_id: int, *, connection: KeptConnection, now: datetime) -> Decision | None:
    """Evaluate a heartbeat if it is due, and open or resolve its alert, in one transaction.

    Return None if it is not due. If another process has locked the heartbeat, wait for it.
    """
    return connection.transact(lambda: _settle(ONE, heartbeat_id, connection=connection, now=now))


def settle_if_free(
    heartbeat_id: int, *, connection: KeptConnection, now: datetime
) -> Decision | None:
    """Evaluate a heartbeat like `settle`, but also return None if another process has locked it."""
    return connection.transact(
        lambda: _settle(_ONE_THAT_IS_FREE, heartbeat_id, connection=connection, now=now)
    )


def postpone(heartbeat_id: int, *, connection: KeptConnection, until: datetime) -> None:
    """Postpone the next evaluation of a heartbeat."""
    connection.all(_POSTPONE, {"heartbeat_id": heartbeat_id, "new_due_ms": milliseconds(until)})


def _settle(
    one: Executable, heartbeat_id: int, *, connection: KeptConnection, now: datetime
) -> Decision | None:
    parameters = {**moments(now), "heartbeat_id": heartbeat_id}
    row = connection.first(one, parameters)
    if row is None:
        return None
    found = FoundHeartbeat._make(row)
    decision = _decide(found, connection=connection, now=now)
    if decision.action is AlertAction.OPEN and not found.takes_alerts:
        postpone(heartbeat_id, connection=connection, until=now + _CLOSED_PAUSE)
        return None
    if decision.action is not AlertAction.NOTHING:
        log = b""
        if decision.problem is Problem.FAILED:
            row = connection.first(_LAST_BODY, {"heartbeat_id": found.id})
            log = (row and row[0]) or b""
        parsed, delivery = _report(found, decision, log, now)
        receive_within(parsed, delivery, connection=connection)
    connection.all(_SETTLE, _settled(found, decision))
    if decision.unheard is not None:
        _count_again(found, decision.unheard, connection=connection, now=now)
    return decision


def _decide(found: FoundHeartbeat, *, connection: KeptConnection, now: datetime) -> Decision:
    facts = facts_of(found)
    if facts.is_told:
        return _decide_again(found, facts, connection=connection, now=now)
    decision = decide(facts, now)
    if facts.state is HeartbeatState.DOWN or decision.state is not HeartbeatState.DOWN:
        return decision
    # Only a missing ping can be caused by an interruption of the receivers.
    since = min(each for each in (facts.counted_from, facts.started_at, now) if each is not None)
    return decide(facts, now, times_unreachable(since, connection=connection, now=now))


def _decide_again(
    found: FoundHeartbeat, facts: Facts, *, connection: KeptConnection, now: datetime
) -> Decision:
    """Decide about a heartbeat that is down and whose alert may have been resolved."""
    parameters = {"project_id": found.project_id, "fingerprint": fingerprint_of(found.id)}
    row = connection.first(_ITS_ALERT, parameters)
    if row is not None and row[0] != RESOLVED:
        return decide(facts, now)
    # If the alert was deleted, it counts as resolved since the heartbeat went down.
    ended_at = (row and row[1]) or found.down_since or now
    times = times_unreachable(ended_at, connection=connection, now=now)
    return decide(replace(facts, alert_ended_at=ended_at), now, times)


def _count_again(
    found: FoundHeartbeat, unheard: Unreachable, *, connection: KeptConnection, now: datetime
) -> None:
    """Restart the schedule at the end of an interruption of the receivers, and log this."""
    began_at, ended_at = unheard.began_at, unheard.ended_at or now
    connection.all(_COUNT_AGAIN, {"heartbeat_id": found.id, "new_counted_from": ended_at})
    schedule = schedule_of(found)
    body = UNHEARD.format(
        began_at=date_and_time(began_at),
        ended_at=date_and_time(ended_at),
        expected_at=date_and_time(schedule.expected_after(ended_at)),
        late=schedule.latest,
    ).encode()
    entry = {
        "heartbeat_id": found.id,
        "created_at": now,
        "kind": PingKind.LOG.value,
        "method": "",
        "sender": SENDER_OF_LOG,
        "user_agent": "",
        "size": len(body),
        "body": body,
    }
    connection.all(_LOG, entry)


def _report(
    found: FoundHeartbeat, decision: Decision, log: bytes, now: datetime
) -> tuple[ParsedBody, InboundDelivery]:
    """Return the report that opens or resolves the alert of a heartbeat, and its delivery.

    `log` is the beginning of the body of the last ping if that ping reported a failure.
    """
    body = orjson.dumps(_content(found, decision, log, now))
    delivery = InboundDelivery(
        project_id=found.project_id,
        integration_id=None,
        format=OWN_FORMAT.name,
        sender=SENDER,
        body=body,
        size=len(body),
        received_at=now,
        began_ns=perf_counter_ns(),
    )
    return OWN_FORMAT.read(body, now=now, reading=_READING), delivery


def _content(
    found: FoundHeartbeat, decision: Decision, log: bytes, now: datetime
) -> dict[str, object]:
    content: dict[str, object] = {
        "title": _TITLES[decision.problem or Problem.MISSED].format(found.name),
        "description": _description(found, decision, log, now),
        "severity": found.severity,
        "monitoring_tool": "Gatebell heartbeat",
        "fingerprint": _identity(found.id),
        "heartbeat": found.name,
        "heartbeat_id": found.id,
    }
    if found.environment:
        content["platform_environment_name"] = found.environment
    if decision.action is AlertAction.RESOLVE:
        content["end_time"] = written(now)
    elif decision.problem is not Problem.FAILED:
        content["start_time"] = written(decision.since or now)
    if found.last_exit_status is not None:
        content["exit_status"] = found.last_exit_status
    return content


def _description(found: FoundHeartbeat, decision: Decision, log: bytes, now: datetime) -> str:
    if decision.action is AlertAction.RESOLVE:
        return "A ping arrived again."
    parts = [_sentence(found, decision, now), found.description, _excerpt(log)]
    return "\n\n".join(part for part in parts if part)


def _sentence(found: FoundHeartbeat, decision: Decision, now: datetime) -> str:
    last = found.last_ping_at
    heard = f"The last ping arrived at {_time(last)}." if last else "No ping has arrived yet."
    schedule = schedule_of(found)
    if decision.problem is Problem.FAILED:
        status = found.last_exit_status
        return (
            "The job reported a failure."
            if status is None
            else f"The job ended with exit status {status}."
        )
    if decision.problem is Problem.UNFINISHED:
        late = f"The job started, but did not end within the grace time of {schedule.latest}."
        return f"{late} {heard}"
    expected = _time(schedule.earlier(decision.since or now))
    return f"A ping was expected by {expected}, with a grace time of {schedule.latest}. {heard}"


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _excerpt(log: bytes) -> str:
    text = log.decode(errors="replace").strip()
    return text if len(text) <= _LONGEST_EXCERPT else f"{text[:_LONGEST_EXCERPT]}…"


def facts_of(found: FoundHeartbeat | Row[*tuple[Any, ...]]) -> Facts:
    """Return the facts for a decision from a row with the columns of heartbeats."""
    return Facts(
        schedule=schedule_of(found),
        state=HeartbeatState(found.state),
        has_alert=found.has_alert,
        counted_from=found.counted_from,
        started_at=moment_of(found.started_ms),
        last_ping_kind=PingKind(found.last_ping_kind) if found.last_ping_kind else None,
        is_told=found.state == HeartbeatState.DOWN.value and found.has_alert and not _failed(found),
    )


def _failed(found: FoundHeartbeat | Row[*tuple[Any, ...]]) -> bool:
    """Return whether the evaluation is due because a ping reported a failure."""
    if found.last_ping_kind != PingKind.FAIL.value or found.last_ping_at is None:
        return False
    return (found.due_ms or 0) <= milliseconds(found.last_ping_at)


def schedule_of(found: FoundHeartbeat | Heartbeat | Row[*tuple[Any, ...]]) -> Schedule:
    """Return the schedule in a row with the columns of heartbeats."""
    return Schedule(**columns_of(found, Schedule))


def _settled(found: FoundHeartbeat, decision: Decision) -> dict[str, object]:
    is_down = decision.state is HeartbeatState.DOWN
    return {
        "heartbeat_id": found.id,
        "new_state": decision.state.value,
        "new_has_alert": is_down,
        "new_due_ms": None if decision.due_at is None else milliseconds(decision.due_at),
        "new_down_since": (found.down_since or decision.since) if is_down else None,
    }
