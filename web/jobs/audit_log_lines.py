"""Writes audit events to the log after their transaction commits."""

import logging
import sys
from functools import cache
from typing import Any

import click
from sqlalchemy import event, inspect
from sqlalchemy.orm import Session, SessionTransaction, UOWTransaction

from models import AuditEvent

_audit_log = logging.getLogger("gatebell.audit")
_WAITING_EVENTS_KEY = "audit_events_to_log"
_LOGGED_COLUMNS = tuple(
    each.key
    for each in AuditEvent.__table__.columns
    if each.key not in {"seal_id", "digest", "erased_digest"}
)


@cache
def register_audit_logging() -> None:
    """Register the session listeners that log audit events.

    Further calls have no effect.
    """
    event.listen(Session, "after_flush", _queue_events)
    event.listen(Session, "after_commit", _write_events)
    event.listen(Session, "after_soft_rollback", _discard_events)


def _queue_events(session: Session, _context: UOWTransaction) -> None:
    for each in session.new:
        if isinstance(each, AuditEvent):
            said = {f"audit_{name}": getattr(each, name) for name in _LOGGED_COLUMNS}
            session.info.setdefault(_WAITING_EVENTS_KEY, []).append((each, said))


def _write_events(session: Session) -> None:
    waiting: list[tuple[AuditEvent, dict[str, Any]]] = session.info.pop(_WAITING_EVENTS_KEY, [])
    if _is_command_at_terminal():
        return
    for each, said in waiting:
        # Events of a rolled-back savepoint were never stored.
        if inspect(each).persistent:
            _audit_log.info(
                "Audit event was stored.", extra={"event": "audit.event_stored", **said}
            )


def _is_command_at_terminal() -> bool:
    """Return whether this process is a command that prints its result to a terminal."""
    return click.get_current_context(silent=True) is not None and sys.stderr.isatty()


def _discard_events(session: Session, ended: SessionTransaction) -> None:
    if not ended.nested:
        session.info.pop(_WAITING_EVENTS_KEY, None)
