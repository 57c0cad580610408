"""Commands for the audit log."""

import sys

import click
from flask.cli import AppGroup, with_appcontext
from sqlalchemy.orm import Session

from domain.audit.seals import SealReference, get_or_create_audit_key, verify_seals
from web.commands.output import print_result
from web.extensions import db
from web.services import get_current_time, get_services, get_settings

#: Maximum number of printed faults. A log that was wiped has a fault for each event.
_MAX_SHOWN_FAULTS = 100

audit = AppGroup("audit", help="Verify the audit log.")


def _parse_seal_reference(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> SealReference | None:
    try:
        return None if text is None else SealReference.from_text(text)
    except ValueError as error:
        message = "Use a head from the log event audit.events_sealed, such as 12:HASH."
        raise click.BadParameter(message) from error


@audit.command("verify")
@click.option(
    "--head",
    metavar="NUMBER:HASH",
    callback=_parse_seal_reference,
    help="Head recorded earlier, for example in the log, that the audit log must still contain.",
)
@with_appcontext
def verify_command(*, head: SealReference | None) -> None:
    """Verify that no audit events were changed, added or removed.

    The exit status is 1 if any event was changed, added or removed.
    """
    session = _open_snapshot_session()
    key = get_or_create_audit_key(
        session=session, keyring=get_services().keyring, now=get_current_time()
    )
    verdict = verify_seals(session=session, key=key, recorded=head)
    session.rollback()
    answer = {
        "intact": not verdict.faults,
        "events": verdict.sealed + verdict.unsealed,
        "unsealed": verdict.unsealed,
        "seals": verdict.seals,
        "head": str(verdict.head) if verdict.head else None,
    }
    if not verdict.faults:
        print_result(answer)
        return
    faults = verdict.faults[:_MAX_SHOWN_FAULTS]
    print_result({**answer, "fault_count": len(verdict.faults), "faults": faults})
    sys.exit(1)


def _open_snapshot_session() -> Session:
    """Return a session that reads a single snapshot and does not block writers."""
    options = (
        {"begin_mode": "DEFERRED"}
        if get_settings().uses_sqlite
        else {"isolation_level": "REPEATABLE READ"}
    )
    session = db.session()
    session.connection(execution_options=options)
    return session
