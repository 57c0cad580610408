"""Tests that concurrent workers and users open only one incident."""

from collections.abc import Sequence
from functools import partial

import pytest
from flask import Flask
from sqlalchemy.orm import Session

from domain.alerts.change_feed import (
    Follower,
    ProjectRoundRobin,
    QueuedChange,
    delete_handled_changes,
    lock_due_changes,
)
from tests.support.alerts.incidents import AT, IncidentProject
from tests.support.service.crowd import run_simultaneously
from web.database.engine import open_engine
from web.jobs.alert_changes import update_incidents
from web.settings.environment import Settings


@pytest.fixture
def project(app: Flask, settings: Settings) -> IncidentProject:
    return IncidentProject(app, settings)


@pytest.mark.long
@pytest.mark.one_database("postgres")
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_alerts_claimed_by_two_workers_join_one_incident(project: IncidentProject) -> None:
    """Resolve alert 1 and fire it again as alert 2, before a worker handles either of them."""
    project.rule()
    engine = open_engine(project.settings)
    with Session(engine) as session, Session(engine) as other:
        project.now_fire("a")
        first = lock_due_changes(
            Follower.INCIDENTS, turns=ProjectRoundRobin(), session=session, now=project.now, limit=9
        )
        project.now_recover("a")
        project.now_fire("a")
        second = lock_due_changes(
            Follower.INCIDENTS, turns=ProjectRoundRobin(), session=other, now=project.now, limit=9
        )
        assert [len(first), len(second)] == [1, 1]

        def handle(theirs: Session, changes: Sequence[QueuedChange]) -> None:
            update_incidents(changes, session=theirs, now=project.now, settings=project.settings)
            delete_handled_changes(changes, session=theirs)
            theirs.commit()

        run_simultaneously([partial(handle, session, first), partial(handle, other, second)])
    engine.dispose()
    (incident,) = project.incidents()
    assert incident["alerts"] == [1, 2]
    project.run()
    assert len(project.incidents()) == 1


def test_only_one_of_several_requests_opens_an_incident_from_an_alert(
    project: IncidentProject,
) -> None:
    project.fire("a")

    def open_one() -> int:
        answer = project.app.test_client().post(
            f"{AT}/incidents", headers={"PRIVATE-TOKEN": project.token}, json={"alerts": [1]}
        )
        return answer.status_code

    assert sorted(run_simultaneously([open_one] * 4)) == [201, 409, 409, 409]
    assert len(project.incidents()) == 1
