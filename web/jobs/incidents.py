"""Lets incidents follow the changes of alerts, in the background worker.

Every minute it also looks again at the alerts that are silenced: they open their incidents when
the silence or maintenance window is over.
"""

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from sqlalchemy.orm import Session

from domain.alerts.following.changes import Change
from domain.clock import system_clock
from domain.incidents.automation import IncidentContext, follow_alerts, open_for_waiting
from web.database.engine import engine_of
from web.jobs.current_settings import current_settings
from web.settings.policies import reading
from web.settings.reader import Settings


def follow_for_incidents(
    changes: Sequence[Change], *, session: Session, now: datetime, settings: Settings
) -> None:
    """Open, extend and close incidents as alerts change."""
    follow_alerts(changes, _context(session, now, settings))


def _context(session: Session, now: datetime, settings: Settings) -> IncidentContext:
    def alert_url(project_path: str, iid: int) -> str:
        return f"{settings.base_url}/{quote(project_path)}/-/alerts/{iid}"

    return IncidentContext(session=session, now=now, reading=reading(settings), alert_url=alert_url)


def open_waiting_incidents(settings: Settings) -> None:
    """Open the incidents of alerts that are silenced no more."""
    with engine_of(settings) as engine, Session(engine) as session:
        context = _context(session, system_clock(), current_settings(settings, session=session))
        open_for_waiting(context, between=session.commit)
