"""The page of a project's images, and the administrators' page with the registry's keys."""

import re

import pytest
import yaml

from domain.access.roles import Role
from tests.support.accounts.administration import (
    find_last_event,
    get_administrator_browser,
    read_redirected_page,
    submit_form_by_field,
)
from tests.support.accounts.people import alice, make_project
from tests.support.accounts.team import browser_of
from tests.support.oauth.oauth_wire import machine
from tests.support.registry.notifications import authorization, digest_of, notify, pushed
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")
ADMIN = "/admin/registry"


@pytest.fixture
def project(gatebell: LiveGatebell) -> str:
    return make_project(gatebell, alice(gatebell))


def page_of(gatebell: LiveGatebell, project: str, role: Role, rest: str = "") -> str:
    browser = browser_of(gatebell, project, role)
    answer = browser.get(f"{gatebell.url}/{project}/-/container_registry{rest}")
    assert answer.status_code == 200, answer.text
    return answer.text


def configuration_on(page: str) -> str:
    found = re.search(r'id="registry-configuration">(.*?)</code>', page, re.DOTALL)
    assert found is not None
    text = re.sub(r"</?span[^>]*>", "", found[1])
    return text.replace("&#34;", '"').replace("&amp;", "&")


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("K4")
def test_the_page_shows_repositories_tags_and_sign_in_commands(
    gatebell: LiveGatebell, project: str
) -> None:
    page = page_of(gatebell, project, Role.DEVELOPER)
    assert "Connect a container registry" in page
    assert "An administrator can start a registry" in page
    notify(gatebell, pushed(project, "v1"), pushed(f"{project}/worker", "x"))
    page = page_of(gatebell, project, Role.REPORTER)
    assert "docker login registry.example.org\ndocker build -t" in page
    assert "read_registry" in page
    assert "config.yml" not in page
    numbers = re.findall(r"/-/container_registry/(\d+)\"><bdi>([^<]+)", page)
    assert [name for _, name in numbers] == [f"{project}/worker", project]
    tags = page_of(gatebell, project, Role.REPORTER, f"/{numbers[1][0]}")
    assert digest_of("a") in tags
    assert "30 bytes" in tags
    assert "docker pull registry.example.org/" in tags
    browser = browser_of(gatebell, project, Role.REPORTER)
    for rest in ("?before=x", "?page=2", "/999999999", "/1?before=%00"):
        answer = browser.get(f"{gatebell.url}/{project}/-/container_registry{rest}")
        assert answer.status_code in {400, 404}, rest


@pytest.mark.spec("K4")
def test_maintainers_see_the_configuration_without_the_secret(
    gatebell: LiveGatebell, project: str
) -> None:
    page = page_of(gatebell, project, Role.MAINTAINER)
    assert authorization(gatebell).removeprefix("Bearer ") not in page
    ready = yaml.safe_load(configuration_on(page))
    assert ready["auth"]["token"]["realm"] == f"{gatebell.url}/jwt/auth"
    assert ready["auth"]["token"]["issuer"] == gatebell.url
    (endpoint,) = ready["notifications"]["endpoints"]
    assert endpoint["url"] == f"{gatebell.url}/api/v4/container_registry_event/events"
    assert {"threshold", "backoff", "maxretries"} <= set(endpoint)
    assert "<code>threshold</code> is deprecated" in page


def test_administrators_see_the_whole_configuration(gatebell: LiveGatebell) -> None:
    page = get_administrator_browser(gatebell).get(f"{gatebell.url}{ADMIN}").text
    ready = yaml.safe_load(configuration_on(page))
    (endpoint,) = ready["notifications"]["endpoints"]
    assert endpoint["headers"]["Authorization"] == [authorization(gatebell)]


def bundle(gatebell: LiveGatebell) -> int:
    return machine(gatebell).get(f"{gatebell.url}/jwt/certificates").text.count("BEGIN CERT")


@pytest.mark.long
@pytest.mark.both_databases
def test_a_new_key_is_published_signs_and_replaces_old_keys(gatebell: LiveGatebell) -> None:
    submit_form_by_field(gatebell, ADMIN, "notice", notice="leaked")
    assert bundle(gatebell) == 1
    page = read_redirected_page(
        gatebell, submit_form_by_field(gatebell, ADMIN, "notice", notice="week")
    )
    assert bundle(gatebell) == 2
    assert "Waiting" in page
    # The new key replaces the other key that is waiting.
    submit_form_by_field(gatebell, ADMIN, "notice", notice="day")
    assert bundle(gatebell) == 2
    kid = re.findall(r"<code>((?:[A-Z2-7]{4}:){11}[A-Z2-7]{4})</code>", page)[0]
    event = find_last_event(gatebell, kid)
    assert event.kind == "registry_key.rotated"
    assert event.details == {"notice_hours": 168, "forget_former": False}
    page = read_redirected_page(
        gatebell, submit_form_by_field(gatebell, ADMIN, "notice", notice="now")
    )
    assert "Former" in page
    assert bundle(gatebell) == 2
    submit_form_by_field(gatebell, ADMIN, "notice", notice="leaked")
    assert bundle(gatebell) == 1
