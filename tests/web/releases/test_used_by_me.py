"""Tests that the release schedule shows which changes affect the viewer's own calls."""

import re
from html import unescape
from http import HTTPStatus

import pytest
from flask.testing import FlaskClient

from tests.support.releases.recorded_calls import RecordedService

pytestmark = [
    pytest.mark.spec("M5"),
    pytest.mark.one_database("sqlite"),
]
PAGES = "/help/releases"


@pytest.fixture
def alice(service: RecordedService) -> FlaskClient:
    """Sign in a user whose token sets an attribute that 16.0 removes, and lists projects."""
    alice = service.person("alice")
    service.project_of(alice)
    caller = service.token_of(alice)
    caller("PUT", "/projects/acme%2Fshop", json={"operations_access_level": "enabled"})
    caller("GET", "/projects")
    service.flush()
    return service.browser_of(alice)


def page_of(browser: FlaskClient, path: str) -> str:
    answer = browser.get(path)
    assert answer.status_code == HTTPStatus.OK, answer.text
    return unescape(answer.text)


def rows_of(page: str) -> dict[str, str]:
    """Return the text of each row, by the id of its change."""
    rows: list[str] = re.findall(r'<tr role="row">.*?</tr>', page, re.DOTALL)
    found = ((re.search(rf'href="{PAGES}/([^"]+)"', row), row) for row in rows)
    return {link[1]: row for link, row in found if link}


@pytest.mark.long
def test_the_list_shows_changes_that_the_viewer_s_calls_use(alice: FlaskClient) -> None:
    rows = rows_of(page_of(alice, f"{PAGES}?used_by=me"))
    assert ">Used by you<" in rows["operations-access-level"]
    assert ">Maybe used by you<" in rows["ci-job-token-scope-enabled"]
    assert "ci-lint-ref" not in rows
    narrowed = rows_of(page_of(alice, f"{PAGES}?used_by=me&release=16.0"))
    assert "operations-access-level" in narrowed
    assert "ci-job-token-scope-enabled" not in narrowed
    everything = rows_of(page_of(alice, PAGES))
    assert "Used by you" in everything["operations-access-level"]
    assert "used by you" not in everything["ci-lint-ref"].lower()


@pytest.mark.long
def test_changes_that_affect_the_most_calls_come_first(alice: FlaskClient) -> None:
    page = page_of(alice, PAGES)
    sections = re.findall(r'aria-labelledby="release-([0-9.]+)"(.*?)</section>', page, re.DOTALL)
    first = {release: next(iter(rows_of(section))) for release, section in sections}
    assert first["16.0"] == "operations-access-level"
    assert re.search(r">[0-9]+ calls?<", rows_of(page)["operations-access-level"])


@pytest.mark.long
def test_a_change_s_page_shows_that_the_viewer_uses_it(alice: FlaskClient) -> None:
    page = page_of(alice, f"{PAGES}/operations-access-level")
    assert re.search(r"This change affects [0-9]+ calls? from your tokens and applications\.", page)
    assert 'href="/-/user_settings/api_changes#operations-access-level"' in page
    unsure = page_of(alice, f"{PAGES}/ci-job-token-scope-enabled")
    assert re.search(r"This change may affect [0-9]+ calls? from your tokens", unsure)
    assert "from your tokens" not in page_of(alice, f"{PAGES}/jwks-alias")


@pytest.mark.long
def test_other_users_do_not_see_the_usage(service: RecordedService, alice: FlaskClient) -> None:
    del alice
    bob = service.browser_of(service.person("bob"))
    page = page_of(bob, f"{PAGES}?used_by=me")
    assert rows_of(page) == {}
    assert "No matching change affects recorded calls" in page
    assert "from your tokens" not in page_of(bob, f"{PAGES}/operations-access-level")


def test_the_filter_requires_a_sign_in(service: RecordedService) -> None:
    visitor = service.app.test_client()
    assert "used_by" not in page_of(visitor, PAGES)
    answer = visitor.get(f"{PAGES}?used_by=me")
    assert answer.status_code == HTTPStatus.FOUND
    assert answer.headers["Location"].startswith("/users/sign_in?next=/help/releases?used_by%3Dme")


@pytest.mark.long
def test_feeds_do_not_support_the_filter(alice: FlaskClient) -> None:
    page = page_of(alice, f"{PAGES}?used_by=me&release=16.0")
    assert f'href="{PAGES}.atom?release=16.0"' in page
    assert alice.get(f"{PAGES}.atom?used_by=me").status_code == HTTPStatus.BAD_REQUEST


def test_an_unknown_filter_value_is_rejected(alice: FlaskClient) -> None:
    assert alice.get(f"{PAGES}?used_by=you").status_code == HTTPStatus.BAD_REQUEST
