"""Stores pings, with one statement on Postgres, and two statements in a transaction on SQLite.

Storing a ping only records its values and the time of the next evaluation of the heartbeat.
`domain/heartbeats/evaluation.py` opens or resolves the heartbeat's alert. Pings are recorded even
if no worker is running.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Executable,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Update,
    and_,
    bindparam,
    case,
    exists,
    insert,
    literal,
    null,
    or_,
    select,
    type_coerce,
    update,
)

from domain.core.database.statements import StatementConnection
from domain.core.keyring import Keyring
from domain.heartbeats.states import HeartbeatState, PingKind, convert_to_unix_ms
from models import Heartbeat, HeartbeatPing, Project
from models.base import UTCDateTime

_MAX_SENDER_LENGTH, _MAX_USER_AGENT_LENGTH = 64, 255


@dataclass(frozen=True, kw_only=True)
class Ping:
    """A request to the URL of a heartbeat."""

    kind: PingKind
    exit_status: int | None
    #: UUID of the run, as text.
    rid: str | None
    method: str
    sender: str
    user_agent: str
    #: Number of bytes that were read. `body` contains the stored part of these bytes.
    size: int
    body: bytes = field(repr=False)
    received_at: datetime


class PingedHeartbeat(NamedTuple):
    """The heartbeat of a ping, and the time of the heartbeat's next evaluation."""

    heartbeat_id: int
    last_duration_ms: int | None
    due_ms: int | None
    state: str


_NOW = bindparam("now", type_=UTCDateTime())
_NOW_MS = bindparam("now_ms", type_=BigInteger())
_RID = bindparam("rid", type_=String())
_EXIT_STATUS = bindparam("exit_status", type_=SmallInteger())

_IS_PAUSED = Heartbeat.state == HeartbeatState.PAUSED.value
_IS_OWN_RUN = Heartbeat.started_ms.is_not(None) & Heartbeat.started_rid.is_not_distinct_from(_RID)
#: Condition that is true if the ping ends the current run. A ping without a run ID ends any run.
_ENDS_RUN = or_(_RID.is_(None), Heartbeat.started_rid.is_not_distinct_from(_RID))
_IS_OTHER_RUN = Heartbeat.started_ms.is_not(None) & ~_ENDS_RUN
_MILLISECONDS_PER_SECOND = literal(1000, BigInteger())
_EVERY, _GRACE = type_coerce(Heartbeat.every, Integer()), type_coerce(Heartbeat.grace, Integer())
#: Time after which the next ping is overdue, in milliseconds. It is NULL for cron expressions.
OVERDUE_AFTER_MS = (_EVERY + _GRACE) * _MILLISECONDS_PER_SECOND
_NEXT_DUE_MS = _NOW_MS + OVERDUE_AFTER_MS
_RUN_DEADLINE_MS = _NOW_MS + _GRACE * _MILLISECONDS_PER_SECOND

_START_VALUES: Mapping[str, Any] = {
    "started_ms": _NOW_MS,
    "started_rid": _RID,
    "due_ms": case(
        (_IS_PAUSED, null()),
        (
            or_(Heartbeat.state == HeartbeatState.DOWN.value, _GRACE == 0),
            Heartbeat.due_ms,
        ),
        (Heartbeat.due_ms < _RUN_DEADLINE_MS, Heartbeat.due_ms),
        else_=_RUN_DEADLINE_MS,
    ),
}

_END_VALUES: Mapping[str, Any] = {
    "started_ms": case((_ENDS_RUN, null()), else_=Heartbeat.started_ms),
    "started_rid": case((_ENDS_RUN, null()), else_=Heartbeat.started_rid),
    "last_duration_ms": case((_IS_OWN_RUN, _NOW_MS - Heartbeat.started_ms), else_=null()),
    "last_exit_status": _EXIT_STATUS,
    "counted_from": _NOW,
}

#: Values after a successful ping. For cron expressions, the time of the next ping is computed when
#: the heartbeat is evaluated, not with each ping.
_SUCCESS_VALUES: Mapping[str, Any] = {
    **_END_VALUES,
    "state": case((_IS_PAUSED, Heartbeat.state), else_=literal(HeartbeatState.UP.value)),
    "down_since": null(),
    "due_ms": case(
        (_IS_PAUSED, null()),
        (Heartbeat.has_alert, _NOW_MS),
        (
            Heartbeat.every.is_(None),
            case(
                (
                    or_(
                        Heartbeat.due_ms.is_(None),
                        Heartbeat.state != HeartbeatState.UP.value,
                    ),
                    _NOW_MS,
                ),
                else_=Heartbeat.due_ms,
            ),
        ),
        # Keep the deadline of another run that is in progress.
        (_IS_OTHER_RUN & (Heartbeat.due_ms < _NEXT_DUE_MS), Heartbeat.due_ms),
        else_=_NEXT_DUE_MS,
    ),
}

_FAIL_VALUES: Mapping[str, Any] = {
    **_END_VALUES,
    "state": case((_IS_PAUSED, Heartbeat.state), else_=literal(HeartbeatState.DOWN.value)),
    "down_since": case(
        (_IS_PAUSED, null()),
        (Heartbeat.state == HeartbeatState.DOWN.value, Heartbeat.down_since),
        else_=_NOW,
    ),
    "due_ms": case((_IS_PAUSED, null()), else_=_NOW_MS),
}


def _build_record_statement(kind: PingKind, values: Mapping[str, Any]) -> Update:
    """Return the UPDATE statement that records a ping of one kind in its heartbeat's row.

    `values` maps the columns that only this kind of ping changes to their new values.
    """
    heard = {} if kind is PingKind.LOG else {"last_ping_at": _NOW, "last_ping_kind": kind.value}
    digest = bindparam("digest", type_=LargeBinary())
    is_previous = and_(
        Heartbeat.previous_key_digest == digest, Heartbeat.previous_key_expires_at > _NOW
    )
    return (
        update(Heartbeat)
        .where(
            or_(Heartbeat.key_digest == digest, is_previous),
            exists().where(Project.id == Heartbeat.project_id, Project.deleted_at.is_(None)),
        )
        .values({**values, **heard, "pings": Heartbeat.pings + 1})
        .returning(
            Heartbeat.id,
            Heartbeat.last_duration_ms,
            Heartbeat.due_ms,
            Heartbeat.state,
        )
    )


RECORD_STATEMENTS: Mapping[PingKind, Update] = {
    PingKind.START: _build_record_statement(PingKind.START, _START_VALUES),
    PingKind.SUCCESS: _build_record_statement(PingKind.SUCCESS, _SUCCESS_VALUES),
    PingKind.FAIL: _build_record_statement(PingKind.FAIL, _FAIL_VALUES),
    PingKind.LOG: _build_record_statement(PingKind.LOG, {}),
}
_KINDS_WITH_DURATION = frozenset({PingKind.SUCCESS, PingKind.FAIL})
_INSERT_PING = insert(HeartbeatPing)


def _build_record_and_log_statement(kind: PingKind, noting: Update) -> Executable:
    """Return the Postgres statement that records a ping and adds it to the log."""
    noted = noting.cte("noted")
    columns: Mapping[str, Any] = {
        "heartbeat_id": noted.c.id,
        "created_at": _NOW,
        "kind": literal(kind.value, String()),
        "exit_status": _EXIT_STATUS,
        "rid": _RID,
        "duration_ms": noted.c.last_duration_ms if kind in _KINDS_WITH_DURATION else null(),
        "method": bindparam("method", type_=String()),
        "sender": bindparam("sender", type_=String()),
        "user_agent": bindparam("user_agent", type_=String()),
        "size": bindparam("size", type_=Integer()),
        "body": bindparam("body", type_=LargeBinary()),
    }
    logged = _INSERT_PING.from_select([*columns], select(*columns.values())).cte("logged")
    return select(noted.c.id, noted.c.last_duration_ms, noted.c.due_ms, noted.c.state).add_cte(
        logged
    )


_POSTGRES_STATEMENTS: Mapping[PingKind, Executable] = {
    kind: _build_record_and_log_statement(kind, noting)
    for kind, noting in RECORD_STATEMENTS.items()
}


_KNOWN_KEY_QUERY = select(Heartbeat.id).where(
    or_(
        Heartbeat.key_digest == bindparam("digest", type_=LargeBinary()),
        Heartbeat.previous_key_digest == bindparam("digest", type_=LargeBinary()),
    )
)


def is_valid_ping_key(key: str, *, connection: StatementConnection, keyring: Keyring) -> bool:
    """Return whether a heartbeat has a current or previous URL with this key."""
    return any(
        connection.fetch_first_row(_KNOWN_KEY_QUERY, {"digest": digest}) is not None
        for digest in keyring.compute_digests(key)
    )


def store_ping(
    key: str, ping: Ping, *, connection: StatementConnection, keyring: Keyring
) -> PingedHeartbeat | None:
    """Store a ping for the heartbeat whose URL contains this key.

    Return None if there is no such heartbeat.
    """
    for digest in keyring.compute_digests(key):
        values = _build_parameters(ping, digest)
        if connection.dialect_name == "postgresql":
            rows = connection.execute_statement(_POSTGRES_STATEMENTS[ping.kind], values)
            found = PingedHeartbeat._make(rows[0]) if rows else None
        else:
            found = connection.run_transaction(
                partial(_store_ping_in_two_statements, ping.kind, values, connection=connection)
            )
        if found is not None:
            return found
    return None


def _store_ping_in_two_statements(
    kind: PingKind, values: Mapping[str, object], *, connection: StatementConnection
) -> PingedHeartbeat | None:
    rows = connection.execute_statement(
        RECORD_STATEMENTS[kind], {name: values[name] for name in _list_parameter_names(kind)}
    )
    if not rows:
        return None
    found = PingedHeartbeat._make(rows[0])
    logged = {name: value for name, value in values.items() if name not in _RECORD_ONLY_PARAMETERS}
    duration = found.last_duration_ms if kind in _KINDS_WITH_DURATION else None
    connection.execute_statement(
        _INSERT_PING,
        {**logged, "heartbeat_id": found.heartbeat_id, "kind": kind.value, "duration_ms": duration},
    )
    return found


_RECORD_ONLY_PARAMETERS = frozenset({"digest", "now", "now_ms"})
_RECORD_PARAMETERS = frozenset({*_RECORD_ONLY_PARAMETERS, "rid", "exit_status"})


@cache
def _list_parameter_names(kind: PingKind) -> frozenset[str]:
    """Return the parameter names of a statement in `RECORD_STATEMENTS`."""
    return frozenset(RECORD_STATEMENTS[kind].compile().params) & _RECORD_PARAMETERS


def _build_parameters(ping: Ping, digest: bytes) -> dict[str, object]:
    return {
        "digest": digest,
        "now": ping.received_at,
        "now_ms": convert_to_unix_ms(ping.received_at),
        "created_at": ping.received_at,
        "exit_status": ping.exit_status,
        "rid": ping.rid,
        "method": ping.method[:8],
        "sender": ping.sender[:_MAX_SENDER_LENGTH],
        "user_agent": ping.user_agent[:_MAX_USER_AGENT_LENGTH],
        "size": ping.size,
        "body": ping.body or None,
    }
