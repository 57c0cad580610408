"""Lets incidents follow the changes of alerts, in the background worker."""

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from sqlalchemy.orm import Session

from domain.alerts.following.changes import Change
from domain.incidents.following import IncidentContext, follow_alerts
from web.settings.policies import reading
from web.settings.reader import Settings


def follow_for_incidents(
    changes: Sequence[Change], *, session: Session, now: datetime, settings: Settings
) -> None:
    """Open, extend and close incidents as alerts change."""

    def alert_url(project_path: str, iid: int) -> str:
        return f"{settings.base_url}/{quote(project_path)}/-/alerts/{iid}"

    context = IncidentContext(
        session=session, now=now, reading=reading(settings), alert_url=alert_url
    )
    follow_alerts(changes, context)
