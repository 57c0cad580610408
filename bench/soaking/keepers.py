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

from bench.soaking.callers import Visitor
from bench.soaking.ground import Ground
from bench.soaking.ledger import Ledger, Titles
from bench.soaking.watch import looking_at
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

_LONGEST_YOUTH, _SHORTEST_YOUTH = timedelta(minutes=4), timedelta(minutes=1)
_AGE = timedelta(days=400)
#: Time columns that pruning uses, in tables that grow with the visitors' activity.
_TIMES: tuple[InstrumentedAttribute[Any], ...] = (
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
_WITH = {Alert.ended_at: (Alert.started_at,)}
#: Seconds after which an accepted alert must be stored.
_STORED_SECONDS = 20.0
_TITLES_AT_ONCE = 500
#: Fractions of the time between which processes are killed. The time afterwards is for memory
#: measurements.
KILLS_FROM, KILLS_UNTIL = 0.05, 0.35
_KILLS = 6
#: Minimum time in seconds between kills, so that processes do some work in a short run too.
_SHORTEST_LIFE = 30.0


def clerk(ground: Ground, titles: Titles, seconds: float) -> Callable[[], None]:
    """Return a function that compares accepted with stored alerts, and then lets data age."""
    # Data ages in a short run too.
    youth = max(min(timedelta(seconds=seconds / 8), _LONGEST_YOUTH), _SHORTEST_YOUTH)

    def turn() -> None:
        look_for(ground, titles, older_than=_STORED_SECONDS)
        moment = now()
        for column in _TIMES:
            # Rows that still have to be checked are younger.
            is_old = (column < moment - youth) & (column > moment - _AGE)
            with database_of(ground.live) as session:
                aged = dict.fromkeys((column, *_WITH.get(column, ())), moment - 2 * _AGE)
                old = update(column.class_).where(is_old).values(aged)
                session.execute(old.execution_options(synchronize_session=False))

    return turn


def look_for(ground: Ground, titles: Titles, *, older_than: float) -> None:
    """Compare alerts that were accepted `older_than` seconds ago with the stored ones."""
    waiting = titles.waiting(older_than=older_than)
    for first in range(0, len(waiting), _TITLES_AT_ONCE):
        some = waiting[first : first + _TITLES_AT_ONCE]
        counted = (
            select(Alert.title, func.count()).where(Alert.title.in_(some)).group_by(Alert.title)
        )
        with looking_at(ground.live) as session:
            stored = {row.title: row[1] for row in session.execute(counted)}
        titles.check(some, stored)


class Killer:
    """Kills web processes and the worker in turn, for a part of the time."""

    def __init__(self, ground: Ground, ledger: Ledger, seconds: float) -> None:
        self._ground = ground
        self._ledger = ledger
        self._from, self._until = KILLS_FROM * seconds, KILLS_UNTIL * seconds
        self._names = cycle(("web", "worker"))

    def turn(self) -> None:
        """Kill the next process."""
        if not self._from < self._ledger.now < self._until:
            return
        name = next(self._names)
        pid = self._oldest(name)
        self._ledger.note_kill(name, pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _oldest(self, name: str) -> int:
        if name == "web":
            return web_processes(self._ground.live)[0]
        started = children(self._ground.live.pid)
        return next(pid for pid, words in started if "web.jobs.worker" in words)


def keepers(ground: Ground, ledger: Ledger, titles: Titles, seconds: float) -> list[Visitor]:
    """Return the clerk and the killer."""
    every = max((KILLS_UNTIL - KILLS_FROM) * seconds / _KILLS, _SHORTEST_LIFE)
    return [
        Visitor(name="clerk", every=30.0, turn=clerk(ground, titles, seconds)),
        Visitor(name="killer", every=every, turn=Killer(ground, ledger, seconds).turn),
    ]
