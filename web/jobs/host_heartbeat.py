"""Reports every minute that this host is running, with its keys, migration and clock."""

import logging
import socket
from collections.abc import Callable
from threading import Thread
from time import sleep

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.core.clock import Clock, read_system_clock
from domain.core.hosts import HOST_REPORT_INTERVAL, HostReport, record_host_report
from domain.core.keyring import Keyring
from domain.core.secret_keys import record_key_use
from web.database.clock_offset import measure_clock_offset_ms, warn_of_clock_offset
from web.database.engine import use_engine
from web.database.schema import get_newest_known_revision
from web.settings.environment import Settings

_log = logging.getLogger("gatebell.hosts")
_RETRY_SECONDS = 5.0


def start_host_heartbeat(settings: Settings, program: str) -> None:
    """Start a daemon thread that reports every minute that this host is running."""
    name = f"{socket.gethostname()}:{settings.port} {program}"
    Thread(target=_report_host_repeatedly, args=(settings, name), name="pulse", daemon=True).start()


def _report_host_repeatedly(
    settings: Settings, name: str, pause: Callable[[float], None] = sleep
) -> None:
    while True:
        try:
            report_host(settings, name)
            pause(HOST_REPORT_INTERVAL.total_seconds())
        except SQLAlchemyError as error:  # /readyz reports unavailable or unmigrated databases
            _log.debug(
                "Host report was not stored.",
                extra={"event": "host.report_not_stored", "reason": type(error).__name__},
            )
            pause(_RETRY_SECONDS)


def report_host(settings: Settings, name: str, *, clock: Clock = read_system_clock) -> None:
    """Store a report with the keys, migration and clock difference of this host."""
    keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
    with use_engine(settings) as engine, Session(engine) as session, session.begin():
        lead = measure_clock_offset_ms(session.connection(), clock=clock)
        warn_of_clock_offset(lead)
        report = HostReport(
            name=name,
            key_fingerprints=keyring.fingerprints,
            revision=get_newest_known_revision(),
            clock_lead_ms=lead,
            seen_at=clock(),
        )
        record_host_report(report, session=session)
        record_key_use(keyring, session=session, now=clock())
