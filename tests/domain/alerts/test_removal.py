"""Removal of old alerts, and resolution of alerts without further reports."""

from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.handling.retention import delete_resolved_alerts, resolve_stale_alerts
from models import Alert, AlertNote, Integration, Project
from tests.support.accounts.people import now
from tests.support.database.projects import store_project

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@pytest.fixture
def project(session: Session) -> Project:
    return store_project(session)


def alert(project: Project, iid: int, status: str, ago: timedelta, **changes: object) -> Alert:
    at = now() - ago
    return Alert(
        **{
            "project_id": project.id,
            "iid": iid,
            "status": status,
            "severity": 0,
            "title": f"Disk {iid}",
            "started_at": at - HOUR,
            "ended_at": at if status == "resolved" else None,
            "last_event_at": at,
            "created_at": at,
            **changes,
        }
    )


def test_alerts_that_were_resolved_long_ago_are_removed(session: Session, project: Project) -> None:
    session.add_all(
        [
            alert(project, 1, "resolved", 40 * DAY),
            alert(project, 2, "resolved", 20 * DAY),
            alert(project, 3, "triggered", 40 * DAY),
            alert(project, 4, "resolved", 20 * DAY, started_at=now() - 50 * DAY),
        ]
    )
    session.flush()
    first = session.scalars(select(Alert.id).where(Alert.iid == 1)).one()
    session.add(AlertNote(alert_id=first, user_name="a", kind="note", text="x", created_at=now()))
    session.commit()
    before = now() - 30 * DAY
    assert delete_resolved_alerts(before=before, session=session, between=session.commit) == 1
    assert session.scalars(select(Alert.iid).order_by(Alert.iid)).all() == [2, 3, 4]
    assert session.scalars(select(AlertNote)).all() == []


def integration(project: Project, identifier: str, minutes: int | None) -> Integration:
    return Integration(
        project_id=project.id,
        type="http",
        name=identifier,
        endpoint_identifier=identifier,
        key_digest=b"d" * 32,
        key_ciphertext="",
        resolve_after_minutes=minutes,
        created_at=now(),
    )


def test_alerts_without_further_reports_are_resolved_automatically(
    session: Session, project: Project
) -> None:
    waits, other = integration(project, "a" * 16, 60), integration(project, "b" * 16, None)
    session.add_all([waits, other])
    session.flush()
    silent, of = 2 * HOUR, {"integration_id": waits.id}
    session.add_all(
        [
            alert(project, 1, "triggered", silent, **of),
            alert(project, 2, "acknowledged", silent, **of),
            alert(project, 3, "ignored", silent, **of),
            alert(project, 4, "triggered", HOUR / 2, **of),
            alert(project, 5, "triggered", silent, integration_id=other.id),
        ]
    )
    session.commit()
    assert resolve_stale_alerts(session=session, now=now(), between=session.commit) == 2
    rows = session.execute(select(Alert.iid, Alert.status).order_by(Alert.iid)).all()
    assert [status for _, status in rows] == [
        *("resolved", "resolved"),
        *("ignored", "triggered", "triggered"),
    ]
    notes = session.scalars(select(AlertNote)).all()
    assert {note.via for note in notes} == {"by itself after 60 minutes without a report"}
    assert resolve_stale_alerts(session=session, now=now(), between=session.commit) == 0
