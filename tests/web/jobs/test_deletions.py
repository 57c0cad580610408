"""Tests that the worker deletes all data of a removed project in slices and can resume."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from domain.core.clock import read_system_clock
from domain.git.storage import get_repository_path
from domain.housekeeping.deletion import remove_deleted_namespaces
from domain.projects.deletion import delete_project
from models import (
    Alert,
    AlertNote,
    AuditEvent,
    CommitStatus,
    Deployment,
    Environment,
    Occurrence,
    Project,
    ProjectRelease,
    RegistryManifest,
    RegistryRemoval,
    RegistryRepository,
    RegistryTag,
    ReleaseLink,
)
from tests.support.accounts.namespaces import get_namespace
from tests.support.alerts.bulk import fill_project, rows_of
from tests.support.service.commands import operate
from web.extensions import db
from web.jobs.retention import remove_deleted_data
from web.services import get_settings

ALERTS, OTHERS = 350, 20
NOW = read_system_clock()


class KilledError(Exception):
    """Simulates the end of a killed worker."""


@pytest.fixture
def session(app: Flask) -> Iterator[Session]:
    """Create a group with two projects that have alerts, and a newer project."""
    operate(app, "groups", "create", "acme")
    for name in ("shop", "site", "newest"):
        operate(app, "projects", "create", f"acme/{name}")
    with app.app_context():
        opened = db.session()
        for name, count in (("shop", ALERTS), ("site", OTHERS)):
            fill_project(f"acme/{name}", count, session=opened, now=NOW)
        add_others(get_namespace("acme/shop", session=opened).project_id or 0, opened)
        opened.commit()
        yield opened


def add_others(project_id: int, session: Session) -> None:
    """Add rows of the other kinds that a project can have many of."""
    environment = Environment(project_id=project_id, name="staging", created_at=NOW)
    release = ProjectRelease(
        project_id=project_id,
        tag_name="v1",
        name="One",
        description="",
        created_at=NOW,
        released_at=NOW,
    )
    images = RegistryRepository(
        project_id=project_id, name="acme/shop", created_at=NOW, pushed_at=NOW
    )
    session.add_all([environment, release, images])
    session.flush()
    alert_id = session.scalar(select(Alert.id).where(Alert.project_id == project_id).limit(1))
    rows: list[Any] = [
        Deployment(
            project_id=project_id,
            iid=1,
            environment_id=environment.id,
            sha="a",
            ref="main",
            is_tag=False,
            status="success",
            created_at=NOW,
            updated_at=NOW,
        ),
        CommitStatus(
            project_id=project_id,
            sha="a",
            ref="",
            name="job",
            stage="external",
            status="success",
            allow_failure=False,
            created_at=NOW,
        ),
        ReleaseLink(release_id=release.id, name="n", url="https://e.example", link_type="other"),
        RegistryManifest(repository_id=images.id, digest="sha256:1"),
        RegistryTag(repository_id=images.id, name="v1", digest="sha256:1", pushed_at=NOW),
        AlertNote(alert_id=alert_id, user_name="a", kind="note", text="x", created_at=NOW),
    ]
    session.add_all(rows)


def delete_shop(session: Session) -> Project:
    place = get_namespace("acme/shop", session=session)
    delete_project(place, session=session, now=NOW)
    # Simulate the deletion of the images; until then all other data stays.
    session.execute(delete(RegistryRemoval))
    session.commit()
    return session.get_one(Project, place.project_id)


def count(table: Any, session: Session) -> int:
    return session.scalar(select(func.count()).select_from(table)) or 0


@pytest.mark.long
def test_all_data_of_a_deleted_project_is_removed_and_other_projects_stay(session: Session) -> None:
    site = get_namespace("acme/site", session=session).project_id or 0
    before = rows_of(site, session=session)
    project = delete_shop(session)
    project_id, own = project.id, get_settings()
    folder = get_repository_path(Path(own.repositories_path), project_id, project.created_at)
    folder.mkdir(parents=True)
    session.rollback()
    assert remove_deleted_data(own) == {"projects": 1, "groups": 0}
    assert rows_of(project_id, session=session) == {}
    assert rows_of(site, session=session) == before
    for table in (ReleaseLink, RegistryManifest, RegistryTag, AlertNote):
        assert count(table, session) == 0
    assert count(Occurrence, session) == OTHERS
    assert not folder.exists()


def kinds_of(project_id: int, session: Session) -> list[str]:
    events = select(AuditEvent.kind).where(AuditEvent.project_id == project_id)
    return list(session.scalars(events.order_by(AuditEvent.id)))


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.parametrize("name", ["shop", "newest"])
def test_audit_events_of_a_deleted_project_stay_and_its_id_is_not_reused(
    app: Flask, session: Session, name: str
) -> None:
    path = f"acme/{name}"
    project_id = get_namespace(path, session=session).project_id or 0
    operate(app, "projects", "delete", path, "--yes")
    session.execute(delete(RegistryRemoval))
    session.commit()
    before = kinds_of(project_id, session)
    assert before == ["project.created", "project.deleted"]
    session.rollback()
    # The newest project is kept until there is a newer one, because SQLite would reuse its id.
    for _ in range(2):
        remove_deleted_data(get_settings())
        operate(app, "projects", "create", path)
        operate(app, "projects", "delete", path, "--yes")
        session.execute(delete(RegistryRemoval))
        session.commit()
    remove_deleted_data(get_settings())
    operate(app, "projects", "create", path)
    later = get_namespace(path, session=session).project_id or 0
    assert later > project_id
    assert session.get(Project, project_id) is None
    assert kinds_of(project_id, session) == before
    assert kinds_of(later, session) == ["project.created"]


@pytest.mark.long
def test_a_deletion_resumes_after_a_worker_was_killed_at_any_point(
    session: Session,
) -> None:
    project_id = delete_shop(session).id
    left, runs = ALERTS, 0
    while True:
        slices = iter(range(3))

        def between() -> None:
            session.commit()
            if next(slices, None) is None:  # noqa: B023 - of this run
                raise KilledError

        try:
            remove_deleted_namespaces(
                remove_files=lambda *_: None, session=session, commit_batch=between, now=NOW
            )
            break
        except KilledError:
            session.rollback()
        now_left = rows_of(project_id, session=session).get("alerts", 0)
        assert now_left <= left
        left, runs = now_left, runs + 1
        assert runs < 50
    session.commit()
    assert runs > 3
    assert rows_of(project_id, session=session) == {}


def test_a_slice_is_small(session: Session) -> None:
    delete_shop(session)
    sizes: list[int] = []
    last = sum(count(table, session) for table in (Alert, Occurrence, AlertNote))

    def between() -> None:
        nonlocal last
        session.commit()
        now_left = sum(count(table, session) for table in (Alert, Occurrence, AlertNote))
        sizes.append(last - now_left)
        last = now_left

    remove_deleted_namespaces(
        remove_files=lambda *_: None, session=session, commit_batch=between, now=NOW
    )
    assert sum(sizes) == 2 * ALERTS + 1
    assert max(sizes) <= 100
