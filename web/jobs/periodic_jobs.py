"""Runs periodic jobs on one of several workers."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps

from sqlalchemy.orm import Session

from domain.clock import Clock, system_clock
from domain.programs.job_turns import claim_turn
from web.database.engine import open_engine
from web.settings.reader import Settings

Job = Callable[[], None]


def once_per_period(
    name: str, period: timedelta, job: Job, settings: Settings, *, clock: Clock = system_clock
) -> Job:
    """Wrap a job so that it runs once per period over all workers."""

    @wraps(job)
    def run() -> None:
        if _is_ours(name, period, settings, clock):
            job()

    return run


def _is_ours(name: str, period: timedelta, settings: Settings, clock: Clock) -> bool:
    engine = open_engine(settings)
    try:
        with Session(engine) as session, session.begin():
            return claim_turn(name, period=period, session=session, now=clock())
    finally:
        engine.dispose()
