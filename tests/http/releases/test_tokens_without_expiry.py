"""Access tokens without an expiry date, before and after release 16.0, over HTTP."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import gitlab
import pytest
import requests

from domain.releases.schedule import CHANGES_BY_ID
from tests.http.releases.test_both_sides import assert_announced
from tests.support.accounts.administration import (
    find_user_id,
    forget_settings,
    get_shared_administrator,
)
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import make_project, now
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings, let_every_process_read

pytestmark = pytest.mark.spec("G4", "M2", "M5")

SETTINGS = "/application/settings"
CHANGE = CHANGES_BY_ID["tokens-without-expiry"]
DAY = timedelta(days=1)
ASKED = {"name": "nightly", "scopes": ["api"]}


def day(days: int) -> str:
    return (now() + days * DAY).date().isoformat()


@dataclass(frozen=True)
class Places:
    """An administrator, and the paths that create tokens of a user, a project and a group."""

    gatebell: LiveGatebell
    api: ApiCaller
    paths: tuple[str, ...]

    def make(self, path: str, **sent: Any) -> requests.Response:
        headers = {"Platform-Release": sent.pop("release")} if "release" in sent else {}
        answer = self.api("POST", path, json={**ASKED, **sent}, headers=headers)
        assert answer.status_code == 201, answer.text
        return answer

    def end_of(self, made: Mapping[str, Any]) -> str | None:
        """Return the expiry date of a working token."""
        end: str | None = used(self, made).done("GET", "/personal_access_tokens/self")["expires_at"]
        return end


@pytest.fixture
def places(gatebell: LiveGatebell) -> Iterator[Places]:
    owner = get_shared_administrator(gatebell)
    project = make_project(gatebell, owner)
    group = project.partition("/")[0]
    yield Places(
        gatebell=gatebell,
        api=api_caller(gatebell, owner),
        paths=(
            f"/users/{find_user_id(gatebell, owner)}/personal_access_tokens",
            f"/projects/{project.replace('/', '%2F')}/access_tokens",
            f"/groups/{group}/access_tokens",
        ),
    )
    forget_settings(gatebell)


def used(places: Places, made: Mapping[str, Any]) -> ApiCaller:
    return ApiCaller(url=places.api.url, token=made["token"])


@pytest.mark.long
@pytest.mark.both_databases
def test_tokens_without_expiry_end_after_a_year_since_16_0(places: Places) -> None:
    with changed_settings(places.gatebell, release="15.11"):
        endless = [*assert_endless(places), made_by_python_gitlab(places)]
        assert_operators_create_endless_tokens(places)
        path = places.paths[1]
        old, gone = (places.make(path).json() for _ in range(2))
        places.api.done("DELETE", f"{path}/{gone['id']}", status=204)
        rotated = places.api.done("POST", f"{path}/{old['id']}/rotate")
        assert rotated["expires_at"] == day(7), "what clients of the API count on"

        told = places.api.done("PUT", SETTINGS, json={"release": "16.0"})["rehearsal"]

        assert (told["running"], told["release"]) == ("15.11", "16.0")
        assert told["tokens_given_expiry"] >= len(endless)
        assert {places.end_of(each) for each in endless} == {day(365)}
        assert places.api.done("GET", f"{path}/{gone['id']}")["expires_at"] is None
        recorded = {"event_name": "token.expiry_set", "per_page": 1}
        (event,) = places.api.done("GET", "/audit_events", params=recorded)
        assert event["details"]["expires_at"] == day(365)
        assert_a_year_ahead(places)

        told = places.api.done("PUT", SETTINGS, json={"release": "15.11"})["rehearsal"]
        assert told["tokens_given_expiry"] == 0
        assert {places.end_of(each) for each in endless} == {day(365)}


def assert_endless(places: Places) -> list[Mapping[str, Any]]:
    """Create tokens before the release, check that they have no expiry, and return them."""
    made = []
    # The release in the header of a request neither sets nor removes an expiry.
    for path in places.paths:
        for sent in ({}, {"release": "18.0"}, {"expires_at": None}, {"expires_at": ""}):
            answer = places.make(path, **sent)
            assert_announced(answer, CHANGE, places.gatebell)
            made.append(answer.json())
    assert {each["expires_at"] for each in made} == {None}
    dated = places.make(places.paths[0], expires_at=day(9))
    assert dated.json()["expires_at"] == day(9)
    assert "Deprecation" not in dated.headers
    shown = used(places, made[0]).done("GET", "/personal_access_tokens/self")
    assert (shown["expires_at"], shown["active"]) == (None, True)
    order = {"created_after": dated.json()["created_at"][:10], "search": ASKED["name"]}
    ids = {
        sort: [each["id"] for each in listed(places, sort=sort, **order)]
        for sort in ("expires_asc", "expires_desc")
    }
    at = {sort: found.index(dated.json()["id"]) for sort, found in ids.items()}
    assert set(ids["expires_asc"][at["expires_asc"] :]) >= {each["id"] for each in made}
    assert set(ids["expires_desc"][: at["expires_desc"]]) >= {each["id"] for each in made}
    ending = {each["id"] for each in listed(places, expires_before=day(3650), **order)}
    assert dated.json()["id"] in ending
    assert not ending & {each["id"] for each in made}
    return made


def made_by_python_gitlab(places: Places) -> Mapping[str, Any]:
    """Create a token with the library python-gitlab and return it."""
    client = gitlab.Gitlab(places.gatebell.url, private_token=places.api.token)
    project = client.projects.get(unquote(places.paths[1].split("/")[2]))
    made = project.access_tokens.create(ASKED)
    assert made.expires_at is None
    assert project.access_tokens.get(made.id).expires_at is None
    found: Mapping[str, Any] = made.attributes
    return found


def listed(places: Places, **query: str) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    while part := places.api.done(
        "GET",
        "/personal_access_tokens",
        params={**query, "per_page": 100, "page": len(found) // 100 + 1},
    ):
        found += part
        if len(part) < 100:
            break
    return found


def assert_a_year_ahead(places: Places) -> None:
    """Create tokens in the release, and check that they expire after a year."""
    let_every_process_read()
    for path in places.paths:
        for sent in ({}, {"release": "15.11"}, {"expires_at": None}):
            answer = places.make(path, **sent)
            assert answer.json()["expires_at"] == day(365), (path, sent)
            assert "Deprecation" not in answer.headers


def assert_operators_create_endless_tokens(places: Places) -> None:
    name = get_shared_administrator(places.gatebell).username
    run = ("tokens", "create", name, "--name", "x", "--scopes", "api")
    made = places.gatebell.cli(*run)
    assert made["expires_at"] is None
    assert used(places, made).done("GET", "/user")
    assert places.gatebell.cli("tokens", "list", name)["tokens"][0]["expires_at"] is None
    assert places.gatebell.cli(*run, "--days", "3")["expires_at"].startswith(day(3))


@pytest.mark.one_database("sqlite")
def test_a_maximum_lifetime_under_a_year_applies_in_every_release(places: Places) -> None:
    with changed_settings(places.gatebell, release="15.11"):
        old = places.make(places.paths[0]).json()
        places.api.done("PUT", SETTINGS, json={"max_personal_access_token_lifetime": 30})
        assert places.end_of(old) == day(30)
        let_every_process_read()
        assert places.make(places.paths[0]).json()["expires_at"] == day(30)
