"""Pruning of old silences and maintenance windows."""

from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.housekeeping.pruning import Retention, prune_expired_rows
from models import MaintenanceWindow, Silence
from tests.support.accounts.people import now
from tests.support.database.projects import store_project

DAY = timedelta(days=1)


def silence(project_id: int, name: str, days_ago: int) -> Silence:
    begin = now() - (days_ago + 1) * DAY
    return Silence(
        project_id=project_id,
        matchers=f'name="{name}"',
        starts_at=begin,
        ends_at=begin + DAY,
        created_at=begin,
    )


def window(project_id: int, name: str, days_ago: int | None) -> MaintenanceWindow:
    return MaintenanceWindow(
        project_id=project_id,
        name=name,
        local_start="2020-01-01T02:00",
        time_zone="UTC",
        minutes=60,
        conditions={},
        first_starts_at=now() - 900 * DAY,
        last_ends_at=None if days_ago is None else now() - days_ago * DAY,
        created_at=now() - 900 * DAY,
    )


def test_silences_and_windows_are_removed_a_year_after_their_end(session: Session) -> None:
    project = store_project(session)
    for days_ago in (366, 364, 0):
        session.add(silence(project.id, str(days_ago), days_ago))
        session.add(window(project.id, str(days_ago), days_ago))
    session.add(window(project.id, "for ever", None))
    session.commit()
    kept = Retention(keep_deliveries=1000, keep_for=30 * DAY)
    removed = prune_expired_rows(kept, session=session, now=now(), commit_batch=session.commit)
    assert (removed["silences"], removed["maintenance_windows"]) == (1, 1)
    assert set(session.scalars(select(Silence.matchers))) == {'name="364"', 'name="0"'}
    assert set(session.scalars(select(MaintenanceWindow.name))) == {"364", "0", "for ever"}
