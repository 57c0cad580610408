"""Tests of concurrent deployments, commit statuses and alerts of a project."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.ci_cd.deployment_actions import (
    change_deployment,
    create_deployment,
    delete_deployment,
    show_deployment,
)
from domain.ci_cd.status_actions import report_status
from domain.ci_cd.types import DeploymentChange, NewCommitStatus, NewDeployment
from domain.core.errors import InvalidError
from domain.projects.views import ProjectView
from tests.support.database.work import project_in, work_in
from tests.support.notifications.paging import Pages
from web.settings.environment import Settings

pytestmark = [
    pytest.mark.one_database("postgres"),
    pytest.mark.parametrize("database_url", ["postgres"], indirect=True),
]
SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def shop(settings: Settings) -> Iterator[Pages]:
    made = Pages(replace(settings, database_statement_timeout_ms=2_000))
    made.person("alice")
    yield made
    made.engine.dispose()


def work_of(shop: Pages, session: Session) -> tuple[UnitOfWork, ProjectView]:
    """Return the operator's unit of work, and the project."""
    return work_in(session, now=shop.now), project_in(session, shop.project_id)


def deploy(shop: Pages, session: Session) -> int:
    new = NewDeployment(environment="production", sha=SHA, ref="main", tag=False)
    return create_deployment(*work_of(shop, session), new).id


def report(shop: Pages, session: Session) -> int:
    new = NewCommitStatus(state="success", ref="main", name="build")
    return report_status(*work_of(shop, session), SHA, new).id


def become(shop: Pages, session: Session, deployment_id: int, status: Any) -> None:
    change = DeploymentChange(status=status)
    change_deployment(*work_of(shop, session), deployment_id, change)


@pytest.mark.long
@pytest.mark.parametrize(
    ("earlier", "later", "words"),
    [("success", "running", "cannot become running"), ("running", "delete", "is running")],
)
def test_a_change_of_a_deployment_sees_the_previous_change(
    shop: Pages, earlier: str, later: str, words: str
) -> None:
    with shop.session() as session:
        deployment_id = deploy(shop, session)

    def change() -> None:
        with shop.session() as session:
            if later == "delete":
                delete_deployment(*work_of(shop, session), deployment_id)
            else:
                become(shop, session, deployment_id, later)

    with ThreadPoolExecutor(1) as other:
        with shop.session() as session:
            become(shop, session, deployment_id, earlier)
            waiting = other.submit(change)
            wait([waiting], timeout=0.5)
        with pytest.raises(InvalidError, match=words):
            waiting.result(30)
    with shop.session() as session:
        assert show_deployment(*work_of(shop, session), deployment_id).status == earlier


@pytest.mark.parametrize("work", [deploy, report])
def test_alerts_do_not_wait_for_ci_reports(
    shop: Pages, work: Callable[[Pages, Session], int]
) -> None:
    with Session(shop.engine) as busy:
        work(shop, busy)
        assert shop.alert()  # Otherwise the statement would time out.
        busy.commit()
