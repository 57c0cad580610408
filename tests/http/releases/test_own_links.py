"""Pagination links of lists whose numbered pages are removed by a release."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import requests

from tests.support.accounts.people import make_project, make_user
from tests.support.accounts.personal_tokens import make_token
from tests.support.registry.notifications import notify, pushed, seconds
from tests.support.service.live import LiveGatebell

pytestmark = [pytest.mark.spec("M2", "M3"), pytest.mark.one_database("sqlite")]


def get(url: str, token: str) -> requests.Response:
    """Send a request as before the releases that remove the numbered pages."""
    headers = {"PRIVATE-TOKEN": token, "Platform-Release": "15.11"}
    return requests.get(url, headers=headers, timeout=30)


def followed(url: str, token: str) -> Iterator[Any]:
    """Yield the items of a list by following the links to the next pages."""
    while url:
        answer = get(url, token)
        assert answer.status_code == 200, (url, answer.text)
        # The service's own links work in every release.
        assert "Deprecation" not in answer.headers, url
        assert not re.search(r"[?&]page=[2-9]", answer.headers.get("Link", "")), url
        yield from answer.json()
        url = answer.links.get("next", {}).get("url", "")


@pytest.mark.parametrize("order", ["", "&sort=asc", "&page=1&pagination=offset"])
def test_links_of_users_lead_to_keyset_pages(gatebell: LiveGatebell, order: str) -> None:
    people = [make_user(gatebell) for _ in range(4)]
    token = make_token(gatebell, people[0]).clear
    url = f"{gatebell.url}/api/v4/users"
    first = get(f"{url}?per_page=1", token)
    assert (first.headers["X-Page"], first.headers["X-Next-Page"]) == ("1", "2")
    total = int(first.headers["X-Total"])
    found = [each["id"] for each in followed(f"{url}?per_page=3{order}", token)]
    assert len(found) == len(set(found)) == total
    assert found == sorted(found, reverse="asc" not in order)


def test_lists_in_another_order_keep_numbered_pages(gatebell: LiveGatebell) -> None:
    token = make_token(gatebell, make_user(gatebell)).clear
    url = f"{gatebell.url}/api/v4/users?order_by=name&per_page=1"
    answer = get(url, token)
    assert "page=2" in answer.links["next"]["url"]


def test_links_of_registry_tags_lead_to_keyset_pages(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    project, token = make_project(gatebell, owner), make_token(gatebell, owner).clear
    names = [f"v{number}" for number in range(1, 6)]
    events = [
        pushed(project, name, content=name, at=seconds(number)) for number, name in enumerate(names)
    ]
    assert notify(gatebell, *events).status_code == 200
    at = f"{gatebell.url}/api/v4/projects/{quote(project, safe='')}/registry/repositories"
    (image,) = get(at, token).json()
    tags = followed(f"{at}/{image['id']}/tags?per_page=2", token)
    assert [each["name"] for each in tags] == names
