"""Records every few seconds that this web server receives requests and reaches the database."""

import logging
import socket
from collections.abc import Callable
from datetime import datetime
from threading import Thread
from time import sleep

from sqlalchemy.exc import SQLAlchemyError

from domain.core.clock import Clock, format_api_time, read_system_clock
from domain.core.database.statements import StatementConnection
from domain.core.hosts import SERVER_HEARTBEAT_INTERVAL, record_server_heartbeat
from web.settings.environment import Settings

_log = logging.getLogger("gatebell.hosts")
_NOT_RECORDED = "Reachability of this web process was not recorded."
_EVENT = "host.reachability_not_recorded"


def start_reachability_recorder(
    settings: Settings, connections: StatementConnection, *, began_at: datetime
) -> None:
    """Start recording the reachability of a web process in a daemon thread.

    `began_at` is the start time of the server, which has several processes. The recorder shares its
    connections with requests. If no connection is free for the recorder, no connection is free for
    a ping either.
    """
    name = f"{socket.gethostname()}:{settings.port}"
    marks = ReachabilityRecorder(name, connections, began_at=began_at)
    Thread(target=marks.record_repeatedly, name="marks", daemon=True).start()


class ReachabilityRecorder:
    """Recorder that regularly stores that a web process reaches the database."""

    def __init__(
        self,
        name: str,
        connections: StatementConnection,
        *,
        began_at: datetime,
        clock: Clock = read_system_clock,
    ) -> None:
        """Store the server's name, its connections and its start time."""
        self._name = name
        self._connections = connections
        #: Start time of the server, or None after the first record.
        self._began_at: datetime | None = began_at
        self._clock = clock

    def record_repeatedly(self, pause: Callable[[float], None] = sleep) -> None:
        """Record the reachability in an endless loop."""
        while True:
            try:
                self.store_reachability()
            except SQLAlchemyError as error:  # /readyz reports unavailable or unmigrated databases
                reason = type(error).__name__
                _log.debug(_NOT_RECORDED, extra={"event": _EVENT, "reason": reason})
            except Exception:  # noqa: BLE001 - without records, heartbeats would never be evaluated
                _log.exception(_NOT_RECORDED, extra={"event": _EVENT})
            pause(SERVER_HEARTBEAT_INTERVAL.total_seconds())

    def store_reachability(self) -> None:
        """Store a record. If it ends an outage of all receivers, log the outage."""
        over = record_server_heartbeat(
            self._name,
            began_at=self._began_at,
            connection=self._connections,
            now=self._clock(),
        )
        self._began_at = None
        if over is not None and over.ended_at is not None:
            said = {"from": format_api_time(over.began_at), "until": format_api_time(over.ended_at)}
            _log.info(
                "Outage of all web servers ended.",
                extra={"event": "host.outage_ended", **said},
            )
