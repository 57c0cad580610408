"""The API /api/v4/…/registry/repositories, without a registry; tests/stories has a registry."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
import requests
from sqlalchemy import select

from models import RegistryRemoval
from tests.support.accounts.administration import find_last_event
from tests.support.accounts.people import (
    alice,
    database_of,
    make_application,
    make_project,
    make_user,
    now,
)
from tests.support.accounts.resource_tokens import script_of
from tests.support.oauth.oauth_wire import machine, new_pair
from tests.support.registry.notifications import digest_of, notify, pushed, seconds
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")
BEFORE = {"Platform-Release": "17.11"}


class Repository:
    """A repository of a project with the tags v1 to v5, and an API client of its owner."""

    def __init__(self, gatebell: LiveGatebell) -> None:
        self.gatebell = gatebell
        self.project = make_project(gatebell, alice(gatebell))
        self.script = script_of(gatebell, alice(gatebell))
        self.all = f"/projects/{quote(self.project, safe='')}/registry/repositories"
        events = [
            pushed(self.project, f"v{number}", content=str(number), at=seconds(number))
            for number in range(1, 6)
        ]
        assert notify(gatebell, *events).status_code == 200
        (found,) = self.script.send_request("GET", self.all).json()
        self.id: int = found["id"]
        self.tags = f"{self.all}/{self.id}/tags"

    def names(self, **options: Any) -> list[str]:
        answer = self.script.send_request("GET", self.tags, **options)
        assert answer.status_code == 200, answer.text
        return [tag["name"] for tag in answer.json()]


@pytest.fixture
def repository(gatebell: LiveGatebell) -> Repository:
    return Repository(gatebell)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("G3")
def test_an_oauth_token_lists_and_shows_pushed_tags(
    gatebell: LiveGatebell, repository: Repository
) -> None:
    application = make_application(gatebell, alice(gatebell), scopes="read_api")
    token = new_pair(gatebell, application, scope="read_api").access
    headers = {"Authorization": f"Bearer {token}"}

    def get(path: str) -> Any:
        answer = machine(gatebell).get(f"{gatebell.url}/api/v4{path}", headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    (shown,) = get(f"{repository.all}?tags_count=true")
    assert shown["tags_count"] == 5
    assert shown["path"] == shown["location"] == repository.project
    assert (shown["name"], shown["status"]) == ("", None)
    assert "tags" not in shown
    datetime.fromisoformat(shown["created_at"])
    assert get(f"/registry/repositories/{repository.id}?tags=true")["tags"][0]["name"] == "v1"
    group = repository.project.partition("/")[0]
    assert [each["id"] for each in get(f"/groups/{group}/registry/repositories")] == [repository.id]
    assert get(f"{repository.tags}/v3") == {
        "name": "v3",
        "path": f"{repository.project}:v3",
        "location": f"{repository.project}:v3",
        "revision": digest_of("config of 3").partition(":")[2],
        "short_revision": digest_of("config of 3").partition(":")[2][:9],
        "digest": digest_of("3"),
        "created_at": seconds_as_json(repository, "v3"),
        "total_size": 30,
    }


def seconds_as_json(repository: Repository, tag: str) -> str:
    found: str = repository.script.send_request("GET", f"{repository.tags}/{tag}").json()[
        "created_at"
    ]
    assert now() - datetime.fromisoformat(found) < timedelta(hours=2)
    return found


def pages(repository: Repository, **first: str) -> Iterator[requests.Response]:
    """Yield the pages of tags by following the links to the next page."""
    answer = repository.script.send_request(
        "GET", repository.tags, params={"per_page": "2", **first}
    )
    while True:
        assert answer.status_code == 200, answer.text
        yield answer
        following = answer.links.get("next")
        if following is None:
            return
        given = {
            name: value[0] for name, value in parse_qs(urlsplit(following["url"]).query).items()
        }
        answer = repository.script.send_request("GET", repository.tags, params=given)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("G3")
def test_since_release_18_0_tags_have_only_keyset_pages(repository: Repository) -> None:
    for query in ({}, {"pagination": "keyset", "order_by": "name", "sort": "asc"}):
        found = list(pages(repository, **query))
        names = [[tag["name"] for tag in answer.json()] for answer in found]
        assert names == [["v1", "v2"], ["v3", "v4"], ["v5"]]
        assert all("X-Total" not in answer.headers for answer in found)
    for refused in ({"page": "2"}, {"pagination": "offset", "page": "2"}, {"cursor": "a b"}):
        answer = repository.script.send_request("GET", repository.tags, params=refused)
        assert answer.status_code == 400
    page = repository.script.send_request("GET", repository.tags, params={"page": "2"})
    assert "rel=next" in page.json()["error"]


@pytest.mark.both_databases
def test_before_release_18_0_tags_have_numbered_pages(repository: Repository) -> None:
    answer = repository.script.send_request(
        "GET", repository.tags, params={"per_page": "2", "page": "2"}, headers=BEFORE
    )
    assert [tag["name"] for tag in answer.json()] == ["v3", "v4"]
    assert (answer.headers["X-Total"], answer.headers["X-Next-Page"]) == ("5", "3")
    by_key = repository.script.send_request(
        "GET", repository.tags, params={"per_page": "2", "pagination": "keyset"}, headers=BEFORE
    )
    assert "X-Total" not in by_key.headers
    assert "cursor=v2" in by_key.headers["Link"]


def test_nothing_is_deleted_without_a_registry(repository: Repository) -> None:
    answer = repository.script.send_request("DELETE", f"{repository.tags}/v1")
    assert answer.status_code == 503
    assert "REGISTRY_URL" in answer.json()["message"]
    assert repository.names() == ["v1", "v2", "v3", "v4", "v5"]


@pytest.mark.both_databases
def test_background_removals_are_queued_for_the_worker(
    gatebell: LiveGatebell, repository: Repository
) -> None:
    rule = {
        "name_regex_delete": "v.*",
        "name_regex_keep": "v1",
        "keep_n": "2",
        "older_than": "2 weeks",
    }
    answer = repository.script.send_request("DELETE", repository.tags, params=rule)
    assert answer.status_code == 202
    for _ in range(2):  # A repeated request changes nothing.
        gone = repository.script.send_request("DELETE", f"{repository.all}/{repository.id}")
        assert gone.status_code == 202
    shown = repository.script.send_request("GET", f"/registry/repositories/{repository.id}").json()
    assert shown["status"] == "delete_scheduled"
    event = find_last_event(gatebell, repository.project)
    assert event.kind == "registry_repository.removed"
    with database_of(gatebell) as session:
        rows = session.scalars(
            select(RegistryRemoval)
            .where(RegistryRemoval.repository_id == repository.id)
            .order_by(RegistryRemoval.id)
        ).all()
        assert [row.rule for row in rows] == [
            {"delete": "v.*", "keep": "v1", "keep_newest": 2, "older_than_seconds": 14 * 86_400},
            None,
        ]


NO_RULES: tuple[tuple[dict[str, str], str], ...] = (
    ({}, "name_regex_delete"),
    ({"name_regex_delete": "("}, "name_regex_delete"),
    ({"name_regex_delete": "(?=a)"}, "name_regex_delete"),
    ({"name_regex_delete": "a{1000}{1000}"}, "name_regex_delete"),
    ({"name_regex_delete": "a" * 256}, "name_regex_delete"),
    ({"name_regex_delete": ".*", "name_regex_keep": "["}, "name_regex_keep"),
    ({"name_regex_delete": ".*", "keep_n": "-1"}, "keep_n"),
    ({"name_regex_delete": ".*", "older_than": "yesterday"}, "older_than"),
    ({"name_regex_delete": ".*", "older_than": "9999999d"}, "older_than"),
)


def test_invalid_removal_rules_are_rejected(repository: Repository) -> None:
    for number, (given, field) in enumerate(NO_RULES):
        way = ("params", "json")[number % 2]
        answer = repository.script.send_request("DELETE", repository.tags, **{way: given})
        assert answer.status_code == 400, answer.text
        assert field in answer.text


@pytest.mark.long
def test_too_many_queued_removals_are_rejected(repository: Repository) -> None:
    rule = {"name_regex_delete": "x"}
    statuses = [
        repository.script.send_request("DELETE", repository.tags, params=rule).status_code
        for _ in range(21)
    ]
    assert statuses == [202] * 20 + [400]


@pytest.mark.long
def test_repositories_of_other_projects_are_not_found(
    gatebell: LiveGatebell, repository: Repository
) -> None:
    other = Repository(gatebell)
    stranger = script_of(gatebell, make_user(gatebell))
    missing = stranger.send_request("GET", "/registry/repositories/999999999")
    hidden = stranger.send_request("GET", f"/registry/repositories/{repository.id}")
    assert (missing.status_code, missing.json()) == (404, hidden.json())
    for path in (f"{other.all}/{repository.id}/tags", f"{other.all}/{repository.id}/tags/v1"):
        assert other.script.send_request("GET", path).status_code == 404
    assert other.script.send_request("DELETE", f"{other.all}/{repository.id}").status_code == 404
    for tag in ("nothing", "v1%00", "%F0%9F%90%B3", "a" * 300):
        assert repository.script.send_request("GET", f"{repository.tags}/{tag}").status_code == 404
