"""Evaluates heartbeats that are due, and opens or resolves their alerts.

The background worker evaluates due heartbeats every second. A ping that changes the state of a
heartbeat causes an immediate evaluation. The worker and the ping both lock the heartbeat's row
first, so that an alert is opened only once and concurrent pings are taken into account. Workers
skip locked rows. Pings wait for the lock, so that their responses are sent after the change.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from time import perf_counter_ns
from typing import Any, NamedTuple

import orjson
from sqlalchemy import BigInteger, Executable, Row, bindparam, case, insert, select, update

from domain.access.features import AccessLevel
from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import OWN_FORMAT
from domain.alerts.parsing import fingerprint
from domain.alerts.parsing.incoming_alert import ParsedBody
from domain.alerts.receiving.receivers import build_external_tool_active_condition
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake import store_alerts_in_transaction
from domain.alerts.storing.lifecycle import RESOLVED
from domain.core.clock import format_api_time, format_message_time
from domain.core.database.statements import StatementConnection, build_columns
from domain.core.due_time_sql import (
    NOW,
    build_milliseconds_from_now,
    compute_time_parameters,
)
from domain.core.hosts import UnreachablePeriod, list_unreachable_periods
from domain.core.types.base import get_column_values
from domain.heartbeats.states import (
    AlertAction,
    HeartbeatDecision,
    HeartbeatFacts,
    HeartbeatProblem,
    HeartbeatSchedule,
    HeartbeatState,
    PingKind,
    convert_from_unix_ms,
    convert_to_unix_ms,
    decide_heartbeat_state,
)
from models import Alert, Heartbeat, HeartbeatPing, Project
from models.base import UTCDateTime

#: Sender of deliveries for heartbeats.
DELIVERY_SENDER = "heartbeat"
#: Maximum length of the last ping's body in the description of an alert, in characters.
_MAX_EXCERPT_LENGTH = 500
_PARSER_SETTINGS = ParserSettings(nesting_limit=10, automatic_fingerprint=True)

_TITLES_BY_PROBLEM = {
    HeartbeatProblem.MISSED: "Heartbeat missed: {}",
    HeartbeatProblem.FAILED: "Heartbeat failed: {}",
    HeartbeatProblem.UNFINISHED: "Heartbeat did not finish: {}",
}
#: Delay before a heartbeat is evaluated again if its project does not accept alerts.
_CLOSED_PROJECT_DELAY = timedelta(minutes=1)
#: Sender of the log entries that the service itself adds.
LOG_SENDER = "Gatebell"
INTERRUPTION_MESSAGE = (
    "Gatebell could not receive pings from {began_at} until {ended_at}, so no alert was opened for "
    "a missing ping. The next ping is expected by {expected_at}, with a grace time of {late}."
)


def compute_heartbeat_fingerprint(heartbeat_id: int) -> bytes:
    """Return the fingerprint of a heartbeat's alerts."""
    return fingerprint.compute_sender_fingerprint(_build_fingerprint_text(heartbeat_id))


def _build_fingerprint_text(heartbeat_id: int) -> str:
    return f"heartbeat {heartbeat_id}"


class DueHeartbeat(NamedTuple):
    """A heartbeat, as selected by `DUE_HEARTBEAT_QUERY`."""

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


DUE_HEARTBEAT_QUERY = (
    select(
        *build_columns(
            DueHeartbeat._fields,
            {"": Heartbeat},
            takes_alerts=case(
                (Project.archived_at.is_not(None), False),
                (Project.monitor_access_level == AccessLevel.DISABLED.value, False),
                (build_external_tool_active_condition(Heartbeat.project_id), False),
                else_=True,
            ),
        )
    )
    .join(Project, Project.id == Heartbeat.project_id)
    .where(
        Heartbeat.id == bindparam("heartbeat_id"),
        Heartbeat.due_ms <= build_milliseconds_from_now(NOW),
        Project.deleted_at.is_(None),
    )
    .with_for_update(of=Heartbeat)
)
UNLOCKED_HEARTBEAT_QUERY = DUE_HEARTBEAT_QUERY.with_for_update(of=Heartbeat, skip_locked=True)

_DUE_HEARTBEATS_QUERY = (
    select(Heartbeat.id)
    .join(Project, Project.id == Heartbeat.project_id)
    .where(Heartbeat.due_ms <= build_milliseconds_from_now(NOW), Project.deleted_at.is_(None))
)
_LONGEST_OVERDUE_QUERY = _DUE_HEARTBEATS_QUERY.order_by(Heartbeat.due_ms).limit(bindparam("most"))
#: Condition that is true if any heartbeat is due for evaluation.
HEARTBEATS_ARE_DUE = _DUE_HEARTBEATS_QUERY.exists()

_LAST_BODY_QUERY = (
    select(HeartbeatPing.body)
    .where(HeartbeatPing.heartbeat_id == bindparam("heartbeat_id"))
    .order_by(HeartbeatPing.id.desc())
    .limit(1)
)

#: Query for the last alert of a heartbeat. With `+ 0`, the planner can only use the indexes that
#: begin with the fingerprint (migration 0051).
_LAST_ALERT_QUERY = (
    select(Alert.status, Alert.ended_at)
    .where(
        Alert.project_id + 0 == bindparam("project_id"),
        Alert.fingerprint == bindparam("fingerprint"),
    )
    .order_by(Alert.id.desc())
    .limit(1)
)

_STORE_DECISION = (
    update(Heartbeat)
    .where(Heartbeat.id == bindparam("heartbeat_id"))
    .values(
        state=bindparam("new_state"),
        has_alert=bindparam("new_has_alert"),
        due_ms=bindparam("new_due_ms", type_=BigInteger()),
        down_since=bindparam("new_down_since", type_=UTCDateTime()),
    )
)

_RESTART_SCHEDULE = (
    update(Heartbeat)
    .where(Heartbeat.id == bindparam("heartbeat_id"))
    .values(
        counted_from=bindparam("new_counted_from", type_=UTCDateTime()),
        started_ms=None,
        started_rid=None,
    )
)

_POSTPONE_EVALUATION = (
    update(Heartbeat)
    .where(Heartbeat.id == bindparam("heartbeat_id"))
    .values(due_ms=bindparam("new_due_ms", type_=BigInteger()))
)


def find_due_heartbeats(
    *, connection: StatementConnection, now: datetime, maximum: int
) -> Sequence[int]:
    """Return the IDs of heartbeats that are due for evaluation, longest overdue first."""
    found = connection.fetch_rows(
        _LONGEST_OVERDUE_QUERY, {**compute_time_parameters(now), "most": maximum}
    )
    return [row[0] for row in found]


def evaluate_heartbeat(
    heartbeat_id: int,
    *,
    connection: StatementConnection,
    now: datetime,
    query: Executable = DUE_HEARTBEAT_QUERY,
) -> HeartbeatDecision | None:
    """Evaluate a heartbeat if it is due, and open or resolve its alert, in one transaction.

    Return None if the heartbeat is not due. If another process has locked the heartbeat, wait for
    the lock, or return None if `query` is `UNLOCKED_HEARTBEAT_QUERY`.
    """
    return connection.run_transaction(
        lambda: _evaluate_locked_heartbeat(query, heartbeat_id, connection=connection, now=now)
    )


def postpone_evaluation(
    heartbeat_id: int, *, connection: StatementConnection, until: datetime
) -> None:
    """Postpone the next evaluation of a heartbeat until a given time."""
    connection.execute_statement(
        _POSTPONE_EVALUATION,
        {"heartbeat_id": heartbeat_id, "new_due_ms": convert_to_unix_ms(until)},
    )


def _evaluate_locked_heartbeat(
    one: Executable, heartbeat_id: int, *, connection: StatementConnection, now: datetime
) -> HeartbeatDecision | None:
    parameters = {**compute_time_parameters(now), "heartbeat_id": heartbeat_id}
    row = connection.fetch_first_row(one, parameters)
    if row is None:
        return None
    found = DueHeartbeat._make(row)
    decision = _decide_state(found, connection=connection, now=now)
    if decision.action is AlertAction.OPEN and not found.takes_alerts:
        postpone_evaluation(heartbeat_id, connection=connection, until=now + _CLOSED_PROJECT_DELAY)
        return None
    if decision.action is not AlertAction.NOTHING:
        log = b""
        if decision.problem is HeartbeatProblem.FAILED:
            row = connection.fetch_first_row(_LAST_BODY_QUERY, {"heartbeat_id": found.id})
            log = (row and row[0]) or b""
        parsed, delivery = _build_report(found, decision, log, now)
        store_alerts_in_transaction(parsed, delivery, connection=connection)
    is_down = decision.state is HeartbeatState.DOWN
    values = {
        "heartbeat_id": found.id,
        "new_state": decision.state.value,
        "new_has_alert": is_down,
        "new_due_ms": None if decision.due_at is None else convert_to_unix_ms(decision.due_at),
        "new_down_since": (found.down_since or decision.since) if is_down else None,
    }
    connection.execute_statement(_STORE_DECISION, values)
    if decision.interruption is not None:
        _restart_schedule(found, decision.interruption, connection=connection, now=now)
    return decision


def _decide_state(
    due_heartbeat: DueHeartbeat, *, connection: StatementConnection, now: datetime
) -> HeartbeatDecision:
    facts = build_heartbeat_facts(due_heartbeat)
    if facts.is_failure_reported:
        return _decide_state_while_down(due_heartbeat, facts, connection=connection, now=now)
    decision = decide_heartbeat_state(facts, now)
    if facts.state is HeartbeatState.DOWN or decision.state is not HeartbeatState.DOWN:
        return decision
    # Only a missing ping can be caused by an interruption of the receivers.
    since = min(each for each in (facts.counted_from, facts.started_at, now) if each is not None)
    return decide_heartbeat_state(
        facts, now, list_unreachable_periods(since, connection=connection, now=now)
    )


def _decide_state_while_down(
    due_heartbeat: DueHeartbeat,
    facts: HeartbeatFacts,
    *,
    connection: StatementConnection,
    now: datetime,
) -> HeartbeatDecision:
    """Decide the state of a heartbeat that is down and whose alert may have been resolved."""
    parameters = {
        "project_id": due_heartbeat.project_id,
        "fingerprint": compute_heartbeat_fingerprint(due_heartbeat.id),
    }
    row = connection.fetch_first_row(_LAST_ALERT_QUERY, parameters)
    if row is not None and row[0] != RESOLVED:
        return decide_heartbeat_state(facts, now)
    # If the alert was deleted, it counts as resolved since the heartbeat went down.
    ended_at = (row and row[1]) or due_heartbeat.down_since or now
    times = list_unreachable_periods(ended_at, connection=connection, now=now)
    return decide_heartbeat_state(replace(facts, alert_ended_at=ended_at), now, times)


def _restart_schedule(
    due_heartbeat: DueHeartbeat,
    unheard: UnreachablePeriod,
    *,
    connection: StatementConnection,
    now: datetime,
) -> None:
    """Restart a heartbeat's schedule after the service was unreachable, and log the restart."""
    began_at, ended_at = unheard.began_at, unheard.ended_at or now
    connection.execute_statement(
        _RESTART_SCHEDULE, {"heartbeat_id": due_heartbeat.id, "new_counted_from": ended_at}
    )
    schedule = build_schedule(due_heartbeat)
    body = INTERRUPTION_MESSAGE.format(
        began_at=format_message_time(began_at),
        ended_at=format_message_time(ended_at),
        expected_at=format_message_time(schedule.get_expected_time(ended_at)),
        late=schedule.grace_text,
    ).encode()
    entry = {
        "heartbeat_id": due_heartbeat.id,
        "created_at": now,
        "kind": PingKind.LOG.value,
        "method": "",
        "sender": LOG_SENDER,
        "user_agent": "",
        "size": len(body),
        "body": body,
    }
    connection.execute_statement(insert(HeartbeatPing), entry)


def _build_report(
    due_heartbeat: DueHeartbeat, decision: HeartbeatDecision, log: bytes, now: datetime
) -> tuple[ParsedBody, InboundDelivery]:
    """Return a report that opens or resolves a heartbeat's alert, and the delivery of the report.

    `log` is the stored body of the last ping if that ping reported a failure.
    """
    body = orjson.dumps(_build_report_content(due_heartbeat, decision, log, now))
    delivery = InboundDelivery(
        project_id=due_heartbeat.project_id,
        integration_id=None,
        format=OWN_FORMAT.name,
        sender=DELIVERY_SENDER,
        body=body,
        size=len(body),
        received_at=now,
        began_ns=perf_counter_ns(),
    )
    return OWN_FORMAT.read(body, now=now, reading=_PARSER_SETTINGS), delivery


def _build_report_content(
    due_heartbeat: DueHeartbeat, decision: HeartbeatDecision, log: bytes, now: datetime
) -> dict[str, object]:
    content: dict[str, object] = {
        "title": _TITLES_BY_PROBLEM[decision.problem or HeartbeatProblem.MISSED].format(
            due_heartbeat.name
        ),
        "description": _build_description(due_heartbeat, decision, log, now),
        "severity": due_heartbeat.severity,
        "monitoring_tool": "Gatebell heartbeat",
        "fingerprint": _build_fingerprint_text(due_heartbeat.id),
        "heartbeat": due_heartbeat.name,
        "heartbeat_id": due_heartbeat.id,
    }
    if due_heartbeat.environment:
        content["platform_environment_name"] = due_heartbeat.environment
    if decision.action is AlertAction.RESOLVE:
        content["end_time"] = format_api_time(now)
    elif decision.problem is not HeartbeatProblem.FAILED:
        content["start_time"] = format_api_time(decision.since or now)
    if due_heartbeat.last_exit_status is not None:
        content["exit_status"] = due_heartbeat.last_exit_status
    return content


def _build_description(
    due_heartbeat: DueHeartbeat, decision: HeartbeatDecision, log: bytes, now: datetime
) -> str:
    if decision.action is AlertAction.RESOLVE:
        return "A ping arrived again."
    excerpt = log.decode(errors="replace").strip()
    if len(excerpt) > _MAX_EXCERPT_LENGTH:
        excerpt = f"{excerpt[:_MAX_EXCERPT_LENGTH]}…"
    problem = _describe_problem(due_heartbeat, decision, now)
    parts = [problem, due_heartbeat.description, excerpt]
    return "\n\n".join(part for part in parts if part)


def _describe_problem(
    due_heartbeat: DueHeartbeat, decision: HeartbeatDecision, now: datetime
) -> str:
    last = due_heartbeat.last_ping_at
    heard = (
        f"The last ping arrived at {_format_time(last)}." if last else "No ping has arrived yet."
    )
    schedule = build_schedule(due_heartbeat)
    if decision.problem is HeartbeatProblem.FAILED:
        status = due_heartbeat.last_exit_status
        return (
            "The job reported a failure."
            if status is None
            else f"The job ended with exit status {status}."
        )
    if decision.problem is HeartbeatProblem.UNFINISHED:
        late = f"The job started, but did not end within the grace time of {schedule.grace_text}."
        return f"{late} {heard}"
    expected = _format_time(schedule.subtract_grace(decision.since or now))
    return f"A ping was expected by {expected}, with a grace time of {schedule.grace_text}. {heard}"


def _format_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def build_heartbeat_facts(heartbeat_row: DueHeartbeat | Row[*tuple[Any, ...]]) -> HeartbeatFacts:
    """Return the facts for evaluating a heartbeat, from a row with the heartbeat's columns."""
    row, kind = heartbeat_row, heartbeat_row.last_ping_kind
    # The evaluation of a heartbeat that is down may be due because a ping reported a failure.
    is_caused_by_failure = (
        kind == PingKind.FAIL.value
        and row.last_ping_at is not None
        and (row.due_ms or 0) <= convert_to_unix_ms(row.last_ping_at)
    )
    is_down = row.state == HeartbeatState.DOWN.value
    return HeartbeatFacts(
        schedule=build_schedule(row),
        state=HeartbeatState(row.state),
        has_alert=row.has_alert,
        counted_from=row.counted_from,
        started_at=convert_from_unix_ms(row.started_ms),
        last_ping_kind=PingKind(kind) if kind else None,
        is_failure_reported=is_down and row.has_alert and not is_caused_by_failure,
    )


def build_schedule(
    heartbeat: DueHeartbeat | Heartbeat | Row[*tuple[Any, ...]],
) -> HeartbeatSchedule:
    """Return the schedule stored in a heartbeat's row."""
    return HeartbeatSchedule(**get_column_values(heartbeat, HeartbeatSchedule))
