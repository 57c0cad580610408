"""Deployments and statuses that CI reports at the same moment, beside alerts of the project."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.ci_cd.commit_statuses import StatusReport, report_status
from domain.ci_cd.deployments import (
    DeploymentReport,
    change_deployment,
    create_deployment,
    delete_deployment,
    get_deployment,
)
from domain.errors import InvalidError
from models import User
from tests.support.notifications.paging import Pages
from web.settings.reader import Settings

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


def deploy(shop: Pages, session: Session) -> int:
    report = DeploymentReport(
        environment="production",
        sha=SHA,
        ref="main",
        is_tag=False,
        status="created",
        user_id=session.scalars(select(User.id)).one(),
    )
    return create_deployment(shop.project_id, report, session=session, now=shop.now).id


def report(shop: Pages, session: Session) -> int:
    status = StatusReport(
        sha=SHA,
        ref="main",
        name="build",
        status="success",
        user_id=session.scalars(select(User.id)).one(),
    )
    return report_status(shop.project_id, status, session=session, now=shop.now).id


@pytest.mark.parametrize(
    ("earlier", "later", "words"),
    [("success", "running", "cannot become running"), ("running", "delete", "is running")],
)
def test_who_changes_a_deployment_sees_the_change_before(
    shop: Pages, earlier: str, later: str, words: str
) -> None:
    with shop.session() as session:
        deployment_id = deploy(shop, session)
    one = shop.project_id, deployment_id

    def change() -> None:
        with shop.session() as session:
            if later == "delete":
                delete_deployment(*one, session=session)
            else:
                change_deployment(*one, later, session=session, now=shop.now)

    with ThreadPoolExecutor(1) as other:
        with shop.session() as session:
            change_deployment(*one, earlier, session=session, now=shop.now)
            waiting = other.submit(change)
            wait([waiting], timeout=0.5)
        with pytest.raises(InvalidError, match=words):
            waiting.result(30)
    with shop.session() as session:
        assert get_deployment(*one, session=session).status == earlier


@pytest.mark.parametrize("work", [deploy, report])
def test_alerts_do_not_wait_for_a_report_of_ci(
    shop: Pages, work: Callable[[Pages, Session], int]
) -> None:
    with Session(shop.engine) as busy:
        work(shop, busy)
        assert shop.alert()  # or its statement takes too long
        busy.commit()
