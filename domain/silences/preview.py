"""What a new silence begins with, and what it would mute of the alerts of the last week."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import func, select, union
from sqlalchemy.orm import Session

from domain.alerts.formats.base import Reading
from domain.alerts.listing.filters import OPEN_STATUSES
from domain.alerts.matching.labels import labels_of
from domain.alerts.matching.matchers import Matcher, Operator, matches
from domain.alerts.matching.parser import LONGEST_TEXT
from domain.projects.views import ProjectView
from domain.silences.types import PreviewAlert, SilencePreview
from models import Alert, Delivery

LOOKED_BACK = timedelta(days=7)
#: At most so many of the newest alerts are looked at, and payloads of so many bytes read.
MOST_ALERTS = 2_000
_MOST_BYTES = 16_000_000
_MOST_SHOWN = 20
#: What tells one problem from another, as senders name it.
_TELLING = ("alertname", "service", "environment", "instance", "host")
_LONGEST = LONGEST_TEXT // (2 * len(_TELLING))


def matchers_for(labels: Mapping[str, str]) -> tuple[Matcher, ...]:
    """Return matchers for the alerts that have the same problem in the same place.

    `host` is left out where `instance` says the same more exactly.
    """
    names = [name for name in _TELLING if 0 < len(labels.get(name, "")) <= _LONGEST]
    if "instance" in names and "host" in names:
        names.remove("host")
    return tuple(Matcher(name, Operator.EQUAL, labels[name]) for name in names)


def preview(
    project: ProjectView,
    matchers: tuple[Matcher, ...],
    *,
    base_url: str,
    session: Session,
    reading: Reading,
    now: datetime,
) -> SilencePreview:
    """Return what matchers match among the open alerts and those of the last seven days."""
    ids, is_cut = _candidates(project.id, session=session, now=now)
    found = labels_of(ids, session=session, reading=reading)
    matched = [alert_id for alert_id in ids if matches(matchers, found[alert_id].labels)]
    alerts = _rows(matched, session=session)
    since = now - LOOKED_BACK
    return SilencePreview(
        matchers=matchers,
        open_alerts=sum(alert.status in OPEN_STATUSES for alert in alerts),
        recent_alerts=sum(alert.started_at >= since for alert in alerts),
        looked_at=len(ids),
        is_complete=not is_cut,
        alerts=[
            PreviewAlert(
                iid=alert.iid,
                title=alert.title,
                severity=found[alert.id].severity,
                status=alert.status,
                started_at=alert.started_at,
                web_url=f"{base_url}/{project.path}/-/alerts/{alert.iid}",
            )
            for alert in alerts[:_MOST_SHOWN]
        ],
    )


def _candidates(project_id: int, *, session: Session, now: datetime) -> tuple[list[int], bool]:
    """Return the ids of alerts to look at, the newest first, and whether some are left out."""
    of_project = (
        select(Alert.id, Alert.started_at, Alert.delivery_id)
        .where(Alert.project_id == project_id)
        .order_by(Alert.started_at.desc(), Alert.id.desc())
        .limit(MOST_ALERTS + 1)
    )
    # A branch for each order that an index has.
    branches = [
        of_project.where(Alert.started_at >= now - LOOKED_BACK),
        *(of_project.where(Alert.status == status) for status in OPEN_STATUSES),
    ]
    together = union(*(select(branch.subquery()) for branch in branches)).subquery()
    newest = (
        select(together)
        .order_by(together.c.started_at.desc(), together.c.id.desc())
        .limit(MOST_ALERTS + 1)
        .subquery()
    )
    rows = session.execute(
        select(newest.c.id, newest.c.delivery_id, func.coalesce(func.length(Delivery.body), 0))
        .outerjoin(Delivery, Delivery.id == newest.c.delivery_id)
        .order_by(newest.c.started_at.desc(), newest.c.id.desc())
    ).all()
    ids: list[int] = []
    seen: set[int | None] = set()
    room = _MOST_BYTES
    for alert_id, delivery_id, size in rows[:MOST_ALERTS]:
        room -= 0 if delivery_id in seen else size
        seen.add(delivery_id)
        if ids and room < 0:
            break
        ids.append(alert_id)
    return ids, len(ids) < len(rows)


def _rows(ids: Sequence[int], *, session: Session) -> Sequence[Alert]:
    found = session.scalars(select(Alert).where(Alert.id.in_(ids))).all() if ids else ()
    return sorted(found, key=lambda alert: (alert.started_at, alert.id), reverse=True)
