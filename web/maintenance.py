"""What the worker does to the database: removes what has had its day, and adds up what came in.

The first every ten minutes, and `flask prune` at once; the second every minute.
"""

import logging
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.charts import add_up
from domain.clock import system_clock
from domain.pruning import Retention, prune
from models import InstanceSetting
from web.database import open_engine
from web.settings import Settings, override, settings_from_environment

_log = logging.getLogger("gatebell.prune")


def run_prune() -> None:
    """Prune the database that the environment names."""
    _log.info("pruned", extra=prune_database(settings_from_environment()))


def prune_database(settings: Settings) -> dict[str, int]:
    """Remove expired rows and return how many of each kind went."""
    engine = open_engine(settings)
    try:
        with Session(engine) as session:
            stored = {row.name: row.value for row in session.scalars(select(InstanceSetting))}
            current = override(settings, stored)
            session.commit()
            retention = Retention(
                keep_deliveries=current.delivery_keep_count,
                keep_for=timedelta(days=current.delivery_keep_days),
                keep_audit_events_for=timedelta(days=current.audit_event_keep_days),
            )
            return prune(retention, session=session, now=system_clock(), between=session.commit)
    finally:
        engine.dispose()


def run_add_up() -> None:
    """Add up what came into the database that the environment names."""
    add_up_days(settings_from_environment())


def add_up_days(settings: Settings) -> None:
    """Add the alerts of the last minute to their days."""
    engine = open_engine(settings)
    try:
        with Session(engine) as session, session.begin():
            add_up(session=session)
    finally:
        engine.dispose()
