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
_WAITING = "audit_events_to_log"
_COLUMNS = tuple(
    each.key
    for each in AuditEvent.__table__.columns
    if each.key not in {"seal_id", "digest", "erased_digest"}
)


@cache
def log_audit_events() -> None:
    """Register the session listeners that log audit events.

    Further calls have no effect.
    """
    event.listen(Session, "after_flush", _remember)
    event.listen(Session, "after_commit", _write)
    event.listen(Session, "after_soft_rollback", _forget)


def _remember(session: Session, _context: UOWTransaction) -> None:
    for each in session.new:
        if isinstance(each, AuditEvent):
            said = {f"audit_{name}": getattr(each, name) for name in _COLUMNS}
            session.info.setdefault(_WAITING, []).append((each, said))


def _write(session: Session) -> None:
    waiting: list[tuple[AuditEvent, dict[str, Any]]] = session.info.pop(_WAITING, [])
    if _is_watched_command():
        return
    for each, said in waiting:
        # Events of a rolled-back savepoint were never stored.
        if inspect(each).persistent:
            _audit_log.info(
                "Audit event was stored.", extra={"event": "audit.event_stored", **said}
            )


def _is_watched_command() -> bool:
    """Return whether this process is a command at a terminal, which already prints what it did."""
    return click.get_current_context(silent=True) is not None and sys.stderr.isatty()


def _forget(session: Session, ended: SessionTransaction) -> None:
    if not ended.nested:
        session.info.pop(_WAITING, None)
