"""How the instance does, for the first page of the administration."""

import logging
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.exc import SQLAlchemyError

from domain.programs.hosts import SILENCE
from domain.programs.job_turns import PULSE, last_turn
from web.admin.security_warnings import Risk, risks_of
from web.admin.setting_changes import settings_now
from web.extensions import db
from web.readiness import what_is_missing
from web.server.bootstrap import FIRST_USERNAME, has_first_password
from web.services import now

_log = logging.getLogger("gatebell.worker")


@dataclass(frozen=True, kw_only=True)
class InstanceState:
    """What is true at this moment."""

    release: str
    tier: str
    base_url: str
    database: str
    #: In a word what keeps the service from working; None if nothing does.
    missing: str | None
    worker_seen_at: datetime | None
    is_worker_alive: bool
    #: Of the first administrator: still the password that was made at set-up.
    first_password_of: str | None
    risks: tuple[Risk, ...]


def state_of_the_instance() -> InstanceState:
    """Look at settings, database and background worker."""
    settings = settings_now(session=db.session())
    seen_at = worker_seen_at()
    return InstanceState(
        release=settings.release,
        tier=settings.tier,
        base_url=settings.base_url,
        database=_database(),
        missing=what_is_missing(),
        worker_seen_at=seen_at,
        is_worker_alive=seen_at is not None and now() - seen_at < SILENCE,
        first_password_of=FIRST_USERNAME if has_first_password(FIRST_USERNAME) else None,
        risks=tuple(risks_of(settings)),
    )


def worker_seen_at() -> datetime | None:
    """Return when a background worker was last heard of; None if never, or nobody can tell."""
    try:
        return last_turn(PULSE, session=db.session())
    except SQLAlchemyError as error:
        db.session.rollback()
        _log.warning("nobody can tell of the worker", extra={"reason": type(error).__name__})
        return None


def _database() -> str:
    """Return the kind of database and its version: `Postgres 16.2`."""
    kind = {"postgresql": "Postgres", "sqlite": "SQLite"}
    dialect = db.engine.dialect
    numbers = dialect.server_version_info or ()
    return f"{kind[dialect.name]} {'.'.join(str(each) for each in numbers)}".strip()
