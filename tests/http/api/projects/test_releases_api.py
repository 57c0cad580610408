"""Tests of `/api/v4/projects/:id/releases`: releases of a project, with links to their files."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.team import give_role, person_for
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases

LINK = {"name": "shop.tar.gz", "url": "https://files.example/shop.tar.gz"}


@pytest.fixture
def project(gatebell: LiveGatebell) -> ApiCaller:
    """A client of a new project with the access of a developer."""
    endpoint = connect(gatebell)
    developer = person_for(gatebell, Role.DEVELOPER)
    give_role(gatebell, endpoint.project, developer, Role.DEVELOPER)
    return api_caller(gatebell, developer, f"/projects/{endpoint.project}")


def release(project: ApiCaller, tag: str = "v1.0", **changes: Any) -> Any:
    return project.done("POST", "/releases", json={"tag_name": tag, **changes}, status=201)


def test_a_release_is_created_changed_listed_and_deleted(project: ApiCaller) -> None:
    made = release(project, description="# First", assets={"links": [LINK]})
    assert (made["name"], made["description"]) == ("v1.0", "# First")
    assert made["assets"]["count"] == 1
    assert made["assets"]["links"][0]["url"] == LINK["url"]
    assert made["upcoming_release"] is False
    assert "already" in project.refused("POST", "/releases", json={"tag_name": "v1.0"}, status=409)
    changed = project.done("PUT", "/releases/v1.0", json={"name": "One"})
    assert (changed["name"], changed["description"]) == ("One", "# First")
    planned = release(project, "v2.0/next", released_at="2099-01-01T00:00:00Z")
    assert planned["upcoming_release"] is True
    assert project.done("GET", "/releases/v2.0%2Fnext") == planned
    assert project.done("GET", "/releases/permalink/latest") == planned
    assert [each["tag_name"] for each in project.done("GET", "/releases")] == ["v2.0/next", "v1.0"]
    assert project.done("DELETE", "/releases/v1.0") == changed
    project.refused("GET", "/releases/v1.0", status=404)
    release(project)


@pytest.mark.long
def test_links_of_a_release_are_added_changed_and_deleted(project: ApiCaller) -> None:
    release(project)
    made = project.done("POST", "/releases/v1.0/assets/links", json=LINK, status=201)
    assert made == {
        "id": made["id"],
        "link_type": "other",
        "direct_asset_url": LINK["url"],
        **LINK,
    }
    one = f"/releases/v1.0/assets/links/{made['id']}"
    other = {"name": "docs", "url": "https://files.example/docs"}
    second = project.done("POST", "/releases/v1.0/assets/links", json=other, status=201)
    assert project.done("PUT", one, json={"link_type": "package"})["link_type"] == "package"
    assert "already" in str(project.refused("PUT", one, json={"name": "docs"}))
    assert project.done("GET", one)["name"] == LINK["name"]
    assert len(project.done("GET", "/releases/v1.0/assets/links")) == 2
    assert project.done("DELETE", one)["id"] == made["id"]
    assert project.done("GET", "/releases/v1.0/assets/links") == [second]
    for url in ("javascript:alert(1)", "files.example", "https://", "https://a b", "file:///etc"):
        wrong = {"name": "x", "url": url}
        error = project.refused("POST", "/releases/v1.0/assets/links", json=wrong)
        assert error.startswith("`url`"), url


def test_links_have_the_field_external_before_16_0(project: ApiCaller) -> None:
    release(project, assets={"links": [LINK]})
    earlier = {"Platform-Release": "15.11"}
    for path, headers, expected in (
        ("/releases/v1.0", earlier, True),
        ("/releases/v1.0", {}, None),
    ):
        (link,) = project.done("GET", path, headers=headers)["assets"]["links"]
        assert link.get("external") is expected
    (link,) = project.done("GET", "/releases/v1.0/assets/links", headers=earlier)
    assert link["external"] is True


def test_only_one_of_parallel_releases_of_a_tag_is_created(project: ApiCaller) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: project("POST", "/releases", json={"tag_name": "v1.0"}), range(8))
        )
    assert sorted(each.status_code for each in answers) == [201] + [409] * 7


@pytest.mark.one_database("sqlite")
def test_releases_of_a_private_project_are_visible_only_to_members(project: ApiCaller) -> None:
    release(project)
    assert requests.get(f"{project.url}/releases", timeout=30).status_code == 404
