"""Commands for the audit log."""

import sys

import click
from flask.cli import AppGroup, with_appcontext
from sqlalchemy.orm import Session

from domain.audit.seals import Head, audit_key, verify
from web.commands.output import print_answer
from web.extensions import db
from web.services import now, services, settings

#: Maximum number of faults that are printed. A log that was wiped has a fault for each event.
_MOST_SHOWN = 100

audit = AppGroup("audit", help="Verify the audit log.")


def _head(_context: click.Context, _option: click.Parameter, text: str | None) -> Head | None:
    try:
        return None if text is None else Head.of(text)
    except ValueError as error:
        message = "Use a head from the log event audit.events_sealed, such as 12:HASH."
        raise click.BadParameter(message) from error


@audit.command("verify")
@click.option(
    "--head",
    metavar="NUMBER:HASH",
    callback=_head,
    help="Head recorded earlier, for example in the log, that the audit log must still contain.",
)
@with_appcontext
def verify_command(*, head: Head | None) -> None:
    """Verify that no audit events were changed, added or removed.

    The exit status is 1 if any were.
    """
    session = _reading_session()
    key = audit_key(session=session, keyring=services().keyring, now=now())
    verdict = verify(session=session, key=key, recorded=head)
    session.rollback()
    answer = {
        "intact": not verdict.faults,
        "events": verdict.sealed + verdict.unsealed,
        "unsealed": verdict.unsealed,
        "seals": verdict.seals,
        "head": str(verdict.head) if verdict.head else None,
    }
    if not verdict.faults:
        print_answer(answer)
        return
    faults = verdict.faults[:_MOST_SHOWN]
    print_answer({**answer, "fault_count": len(verdict.faults), "faults": faults})
    sys.exit(1)


def _reading_session() -> Session:
    """Return a session with a single snapshot that blocks no writer."""
    options = (
        {"begin_mode": "DEFERRED"}
        if settings().uses_sqlite
        else {"isolation_level": "REPEATABLE READ"}
    )
    session = db.session()
    session.connection(execution_options=options)
    return session
