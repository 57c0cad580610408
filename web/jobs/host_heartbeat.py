"""Reports every minute that this host is running, with its keys, migration and clock."""

import logging
import socket
from collections.abc import Callable
from threading import Thread
from time import sleep

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.core.clock import Clock, system_clock
from domain.core.hosts import REPORT_INTERVAL, HostReport, record_host_report
from domain.core.keyring import Keyring
from domain.core.secret_keys import record_use
from web.database.clocks import clock_lead_ms, warn_of_lead
from web.database.engine import engine_of
from web.database.schema import newest_known_revision
from web.settings.reader import Settings

_log = logging.getLogger("gatebell.hosts")
_AFTER_FAILURE_SECONDS = 5.0


def start_pulse(settings: Settings, program: str) -> None:
    """Start reporting in a daemon thread."""
    name = f"{socket.gethostname()}:{settings.port} {program}"
    Thread(target=_beat_on, args=(settings, name), name="pulse", daemon=True).start()


def _beat_on(settings: Settings, name: str, pause: Callable[[float], None] = sleep) -> None:
    while True:
        try:
            beat(settings, name)
            pause(REPORT_INTERVAL.total_seconds())
        except SQLAlchemyError as error:  # unavailable or not migrated; /readyz reports it
            _log.debug(
                "Host report was not stored.",
                extra={"event": "host.report_not_stored", "reason": type(error).__name__},
            )
            pause(_AFTER_FAILURE_SECONDS)


def beat(settings: Settings, name: str, *, clock: Clock = system_clock) -> None:
    """Store a report of this host."""
    keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
    with engine_of(settings) as engine, Session(engine) as session, session.begin():
        lead = clock_lead_ms(session.connection(), clock=clock)
        warn_of_lead(lead)
        report = HostReport(
            name=name,
            key_fingerprints=keyring.fingerprints,
            revision=newest_known_revision(),
            clock_lead_ms=lead,
            seen_at=clock(),
        )
        record_host_report(report, session=session)
        record_use(keyring, session=session, now=clock())
