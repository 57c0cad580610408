"""The worker's job that removes what belongs to deleted groups and projects."""

import logging
from functools import partial
from time import sleep

from sqlalchemy.orm import Session

from domain.clock import Clock, system_clock
from domain.repositories.storage import remove_repository
from domain.upkeep.deletion import remove_deleted
from web.database.engine import open_engine
from web.settings.reader import Settings, settings_from_environment

_log = logging.getLogger("gatebell.deletion")
_REST_SECONDS = 0.01


def run_deletions() -> None:
    """Remove what was deleted, in the database of the environment."""
    removed = remove_from_database(settings_from_environment())
    if any(removed.values()):
        _log.info("removed what was deleted", extra=removed)


def remove_from_database(settings: Settings, *, clock: Clock = system_clock) -> dict[str, int]:
    """Remove what was deleted, and return how many projects and groups are gone."""
    engine = open_engine(settings)
    try:
        with Session(engine) as session:
            removed = remove_deleted(
                remove_files=partial(remove_repository, settings.repositories_path),
                session=session,
                between=partial(_commit_and_rest, session),
                now=clock(),
            )
            session.commit()
            return removed
    finally:
        engine.dispose()


def _commit_and_rest(session: Session) -> None:
    """Commit a slice, and let those write who wait: SQLite has no queue of writers."""
    session.commit()
    sleep(_REST_SECONDS)
