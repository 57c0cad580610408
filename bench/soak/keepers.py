"""External events of a soak: passing time, killed processes, and checks of stored alerts.

Data is kept for at least a day, but a soak takes an hour. Therefore data that is some minutes old
is made much older. Pruning then has as much to do as elsewhere in months.
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import cycle
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import InstrumentedAttribute

from bench.soak.callers import SoakVisitor
from bench.soak.ledger import AcceptedAlerts, ResponseLedger
from bench.soak.soak_service import SoakService
from bench.soak.watch import open_for_reading
from models import (
    AccessToken,
    Alert,
    Authorization,
    Delivery,
    DeviceAuthorization,
    Escalation,
    EscalationPage,
    Mail,
    Page,
    PageBatch,
    PageMessage,
    WebhookDelivery,
)
from tests.faults.processes import children, web_processes
from tests.support.accounts.people import database_of, now

_MAX_ROW_AGE, _MIN_ROW_AGE = timedelta(minutes=4), timedelta(minutes=1)
_AGED_BY = timedelta(days=400)
#: Time columns that pruning uses, in tables that grow with the visitors' activity.
_AGED_COLUMNS: tuple[InstrumentedAttribute[Any], ...] = (
    Alert.ended_at,
    Delivery.received_at,
    AccessToken.revoked_at,
    Authorization.code_expires_at,
    DeviceAuthorization.expires_at,
    Escalation.ended_at,
    EscalationPage.paged_at,
    Mail.created_at,
    Page.created_at,
    PageBatch.created_at,
    PageMessage.ended_at,
    WebhookDelivery.created_at,
)
#: Columns that must age together, since no alert ends before its start.
_COLUMNS_AGED_TOGETHER = {Alert.ended_at: (Alert.started_at,)}
#: Seconds after which an accepted alert must be stored.
_MAX_STORE_SECONDS = 20.0
_TITLES_PER_QUERY = 500
#: Fractions of the time between which processes are killed. The time afterwards is for memory
#: measurements.
KILLS_START, KILLS_END = 0.05, 0.35
_KILL_COUNT = 6
#: Minimum time in seconds between kills, so that processes do some work in a short run too.
_MIN_SECONDS_BETWEEN_KILLS = 30.0


def build_alert_checker(
    service: SoakService, titles: AcceptedAlerts, seconds: float
) -> Callable[[], None]:
    """Return a function that compares accepted with stored alerts, and then lets data age."""
    # Data ages in a short run too.
    youth = max(min(timedelta(seconds=seconds / 8), _MAX_ROW_AGE), _MIN_ROW_AGE)

    def turn() -> None:
        check_stored_alerts(service, titles, older_than=_MAX_STORE_SECONDS)
        moment = now()
        for column in _AGED_COLUMNS:
            # Rows that still have to be checked are younger.
            is_old = (column < moment - youth) & (column > moment - _AGED_BY)
            with database_of(service.live) as session:
                aged = dict.fromkeys(
                    (column, *_COLUMNS_AGED_TOGETHER.get(column, ())), moment - 2 * _AGED_BY
                )
                old = update(column.class_).where(is_old).values(aged)
                session.execute(old.execution_options(synchronize_session=False))

    return turn


def check_stored_alerts(service: SoakService, titles: AcceptedAlerts, *, older_than: float) -> None:
    """Compare alerts that were accepted `older_than` seconds ago with the stored ones."""
    waiting = titles.waiting(older_than=older_than)
    for first in range(0, len(waiting), _TITLES_PER_QUERY):
        some = waiting[first : first + _TITLES_PER_QUERY]
        counted = (
            select(Alert.title, func.count()).where(Alert.title.in_(some)).group_by(Alert.title)
        )
        with open_for_reading(service.live) as session:
            stored = {row.title: row[1] for row in session.execute(counted)}
        titles.check(some, stored)


class ProcessKiller:
    """Kills web processes and the worker in turn, for a part of the time."""

    def __init__(self, service: SoakService, ledger: ResponseLedger, seconds: float) -> None:
        self._service = service
        self._ledger = ledger
        self._from, self._until = KILLS_START * seconds, KILLS_END * seconds
        self._names = cycle(("web", "worker"))

    def turn(self) -> None:
        """Kill the next process."""
        if not self._from < self._ledger.now < self._until:
            return
        name = next(self._names)
        pid = self._oldest(name)
        self._ledger.record_kill(name, pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _oldest(self, name: str) -> int:
        if name == "web":
            return web_processes(self._service.live)[0]
        started = children(self._service.live.pid)
        return next(pid for pid, words in started if "web.jobs.worker" in words)


def build_keepers(
    service: SoakService, ledger: ResponseLedger, titles: AcceptedAlerts, seconds: float
) -> list[SoakVisitor]:
    """Return the clerk and the killer."""
    every = max((KILLS_END - KILLS_START) * seconds / _KILL_COUNT, _MIN_SECONDS_BETWEEN_KILLS)
    return [
        SoakVisitor(name="clerk", every=30.0, turn=build_alert_checker(service, titles, seconds)),
        SoakVisitor(name="killer", every=every, turn=ProcessKiller(service, ledger, seconds).turn),
    ]
