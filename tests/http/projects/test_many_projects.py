"""Pagination and search of groups with many projects or many members."""

import re

import pytest

from domain.access.roles import Role
from domain.projects.namespace_changes import create_project
from models import Member, User
from tests.support.accounts.namespaces import get_namespace
from tests.support.accounts.people import (
    alice,
    database_of,
    make_project,
    now,
    open_browser,
    signed_in,
    unique,
)
from tests.support.service.live import LiveGatebell

#: Default number of items on a page.
SIZE = 20


def make_large_group(gatebell: LiveGatebell, word: str) -> str:
    """Create a group of Alice with one project more than a page shows; return its path."""
    group = make_project(gatebell, alice(gatebell)).partition("/")[0]
    with database_of(gatebell) as session:
        for number in range(SIZE):
            create_project(
                f"{group}/{word}-{number:02}",
                visibility="private",
                reserved=frozenset(),
                session=session,
                now=now(),
            )
    return group


def paths_on(page: str, group: str) -> list[str]:
    return re.findall(rf'href="/({group}/[^"/]+)"', page)


@pytest.mark.long
def test_the_projects_of_a_group_are_paginated(gatebell: LiveGatebell) -> None:
    word = unique("shop")
    group = make_large_group(gatebell, word)
    browser = signed_in(gatebell, alice(gatebell))
    first = browser.get(f"{gatebell.url}/{group}").text
    assert f"{SIZE + 1} projects in this group" in first
    assert f'href="/{group}?page=2" rel="next"' in first
    second = browser.get(f"{gatebell.url}/{group}?page=2").text
    assert f'href="/{group}?page=1" rel="prev"' in second
    assert (len(paths_on(first, group)), len(paths_on(second, group))) == (SIZE, 1)
    assert len({*paths_on(first, group), *paths_on(second, group)}) == SIZE + 1


@pytest.mark.long
def test_a_search_finds_groups_and_projects(gatebell: LiveGatebell) -> None:
    word = unique("word")
    group = make_large_group(gatebell, word)
    browser = signed_in(gatebell, alice(gatebell))
    found = browser.get(f"{gatebell.url}/groups", params={"search": word.upper()}).text
    assert f"0 groups and {SIZE} projects matching" in found
    assert len(paths_on(found, group)) == SIZE
    by_path = browser.get(f"{gatebell.url}/groups", params={"search": group}).text
    assert f'href="/{group}"' in by_path
    nothing = browser.get(f"{gatebell.url}/groups", params={"search": "<no such thing>"})
    assert nothing.status_code == 200
    assert "No matching groups or projects" in nothing.text
    stranger = gatebell.http().get(f"{gatebell.url}/groups", params={"search": word}).text
    assert paths_on(stranger, group) == []


@pytest.mark.long
def test_the_list_of_groups_shows_some_projects_and_links_to_all(
    gatebell: LiveGatebell,
) -> None:
    group = make_large_group(gatebell, unique("shop"))
    browser = signed_in(gatebell, alice(gatebell))
    page, address = "", f"{gatebell.url}/groups"
    while f"All projects of <bdi>{group}</bdi>" not in page:
        page = browser.get(address).text
        following = re.search(r'href="([^"]+)" rel="next"', page)
        address = f"{gatebell.url}{following[1]}" if following else ""
    assert len(paths_on(page, group)) == 10


def test_a_project_can_be_created_in_a_group_given_by_its_path(
    gatebell: LiveGatebell,
) -> None:
    group = make_project(gatebell, alice(gatebell)).partition("/")[0]
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/projects/new", params={"group": group})
    assert f'<option selected value="{group}">' in page.text
    other = browser.get(f"{gatebell.url}/projects/new", params={"group": "nobodys-group"})
    assert "nobodys-group" not in other.text


def test_members_are_paginated_and_searchable(gatebell: LiveGatebell) -> None:
    group = make_project(gatebell, alice(gatebell)).partition("/")[0]
    word = unique("crowd")
    with database_of(gatebell) as session:
        group_id = get_namespace(group, session=session).id
        people = [
            User(
                username=f"{word}-{number:02}",
                email=f"{word}-{number:02}@example.org",
                name="",
                password_hash="",
                created_at=now(),
            )
            for number in range(SIZE)
        ]
        session.add_all(people)
        session.flush()
        session.add_all(
            Member(user_id=each.id, group_id=group_id, role=int(Role.GUEST), created_at=now())
            for each in people
        )
    browser = signed_in(gatebell, alice(gatebell))
    address = f"{gatebell.url}/groups/{group}/-/members"
    first = browser.get(address).text
    assert f"{SIZE + 1} members" in first
    assert (f"{word}-18" in first, f"{word}-19" in first) == (True, False)
    assert f"{word}-19" in browser.get(address, params={"page": "2"}).text
    found = browser.get(address, params={"search": f"{word}-19"}).text
    assert "1 member matching" in found
    assert f"{word}-19" in found


def test_an_invalid_page_number_is_rejected(gatebell: LiveGatebell) -> None:
    browser = open_browser(gatebell, alice(gatebell))
    for page in ("-1", "x", "9" * 7, "9" * 40):
        for path in ("/groups?", "/groups?search=a&"):
            assert browser.get(f"{gatebell.url}{path}page={page}").status_code == 400, page
