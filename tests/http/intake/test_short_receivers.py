"""The short URLs of a project's receivers, for all valid names of projects."""

from dataclasses import replace

import pytest

from domain.accounts.users import get_user
from domain.projects.namespace_changes import add_owner, create_group, create_project
from tests.support.accounts.people import alice, database_of, make_project, now
from tests.support.alerts.senders import Endpoint, connect, item, webhook
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


def project_called(gatebell: LiveGatebell, *names: str) -> str:
    """Create a project below a new group; all names but the last are nested groups."""
    above = make_project(gatebell, alice(gatebell)).partition("/")[0]
    with database_of(gatebell) as session:
        path = above
        for name in names[:-1]:
            path = f"{path}/{name}"
            create_group(path, reserved=frozenset(), session=session, now=now())
        path = f"{path}/{names[-1]}"
        made = create_project(
            path, visibility="private", reserved=frozenset(), session=session, now=now()
        )
        add_owner(
            made, get_user(alice(gatebell).username, session=session).id, session=session, now=now()
        )
    return path


def at(endpoint: Endpoint, path: str) -> Endpoint:
    return replace(endpoint, url=f"{endpoint.service}/{path}")


@pytest.mark.parametrize(
    "names",
    [
        ("prometheus",), ("alerts",), ("notify",), ("alerts", "prometheus"), ("alerts", "notify"),
        ("prometheus", "prometheus"), ("prometheus", "alerts"),
    ],
)  # fmt: skip
def test_a_project_of_any_name_has_short_urls(
    gatebell: LiveGatebell, names: tuple[str, ...]
) -> None:
    project = project_called(gatebell, *names)
    http = connect(gatebell, project)
    metrics = connect(gatebell, project, kind="prometheus", name="Metrics")
    assert at(http, f"{project}/alerts/notify.json").accepted(title="a")["title"] == "a"
    sent = at(metrics, f"{project}/prometheus/alerts/notify.json").post(webhook(item("b")))
    assert sent.status_code == 200, sent.text
    assert at(http, http.path.strip("/")).accepted(title="c")["title"] == "c"
    assert {alert.title for alert in list_stored_alerts(gatebell, project)} == {"a", "b", "c"}


def test_a_short_url_without_a_project_is_not_found(gatebell: LiveGatebell) -> None:
    project = project_called(gatebell, "store")
    http = connect(gatebell, project)
    group = project.partition("/")[0]
    for path in (
        f"{project}/prometheus/alerts/notify.json",
        f"{group}/prometheus/alerts/notify.json",
        f"{group}/alerts/notify.json",
        f"{project}/alerts/notify/hook/short.json",
    ):
        answer = at(http, path).send(title="x")
        assert answer.status_code == 404, path
        assert answer.headers["Content-Type"] == "application/json"
