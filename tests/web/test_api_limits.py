"""Tests of the rate limits of common endpoints: releases, callers and combined limits."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask, Response, jsonify
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.http.oauth.test_rate_limits import rate_limit_headers, token_of
from web.access.api_limits import RateLimitGroup, count_rate_limited_request
from web.access.decorators import find_bearer_or_count_anonymous, open_to_anyone
from web.http.endpoints import ApiClientBlueprint, ErrorFormat
from web.settings.environment import Settings, SettingsError, parse_setting_value

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.spec("L1", "L2")]


@pytest.fixture
def database_url(migrated_sqlite: Path, tmp_path: Path) -> str:
    shutil.copy(migrated_sqlite, tmp_path / "gatebell.db")
    return f"sqlite:///{tmp_path / 'gatebell.db'}"


def common_endpoint() -> ApiClientBlueprint:
    """Return a view that counts requests of a family, as operations of the API do."""
    blueprint = ApiClientBlueprint("common", __name__, errors=ErrorFormat.API)

    @blueprint.get("/api/v4/common/<name>")
    @open_to_anyone
    def show(name: str) -> Response:
        find_bearer_or_count_anonymous(("api",))
        count_rate_limited_request(RateLimitGroup[name])
        return jsonify({})

    return blueprint


#: Checks of a consumer's sources are limited in every release.
FROM_18_0 = [family for family in RateLimitGroup if family is not RateLimitGroup.RELEASE_CHECKS]


@pytest.fixture
def limited(
    make_app: Callable[[Settings], Flask], settings: Settings
) -> Callable[..., FlaskClient]:
    def make(**changes: object) -> FlaskClient:
        app = make_app(replace(settings, **changes))  # type: ignore[arg-type]
        app.register_blueprint(common_endpoint())
        return app.test_client()

    return make


def ask(client: FlaskClient, family: str, token: str = "", address: str = "") -> TestResponse:
    return client.get(
        f"/api/v4/common/{family}",
        headers={"PRIVATE-TOKEN": token} if token else {},
        environ_overrides={"REMOTE_ADDR": address or "192.0.2.1"},
    )


@pytest.mark.long
def test_each_family_is_limited_from_release_18_0_on(limited: Callable[..., FlaskClient]) -> None:
    rates = {}
    for release in ("17.11", "18.0", "18.1"):
        client = limited(release=release, api_rate_limit="100000/minute")
        rates[release] = {each: rate_limit_headers(ask(client, each.name))[0] for each in FROM_18_0}
    assert set(rates["17.11"].values()) == {100_000}  # This is the limit of the whole API.
    assert rates["18.0"] == rates["18.1"]
    assert set(rates["18.0"].values()) <= {200, 300, 400, 600}


def test_an_explicit_rate_overrides_the_rate_of_any_release(
    limited: Callable[..., FlaskClient],
) -> None:
    client = limited(release="16.0", project_api_rate_limit="2/day", api_rate_limit="")
    answers = [ask(client, "PROJECT") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [rate_limit_headers(each) for each in answers] == [(2, 1, 1), (2, 2, 0), (2, 3, 0)]
    assert int(answers[2].headers["Retry-After"]) > 0
    assert answers[2].get_json() == {"message": "429 Too Many Requests"}
    off = limited(release="18.0", project_api_rate_limit="", api_rate_limit="")
    assert "RateLimit-Limit" not in ask(off, "PROJECT").headers


def test_a_platform_release_header_does_not_bypass_the_limit(
    limited: Callable[..., FlaskClient],
) -> None:
    client = limited(release="18.0", api_rate_limit="")
    rehearsed = client.get("/api/v4/common/GROUPS", headers={"Platform-Release": "16.0"})
    assert rate_limit_headers(rehearsed)[0] == 200


def test_each_user_and_family_has_its_own_count(limited: Callable[..., FlaskClient]) -> None:
    client = limited(groups_api_rate_limit="1/day", group_api_rate_limit="1/day")
    alice, bob = token_of(client, "alice"), token_of(client, "bob")
    asked = [(alice, "GROUPS"), (alice, "GROUPS"), (alice, "GROUP"), (bob, "GROUPS"), ("", "GROUP")]
    statuses = [ask(client, family, token).status_code for token, family in asked]
    assert statuses == [200, 429, 200, 200, 200]


def test_anonymous_requests_are_limited_by_address_with_a_separate_rate_for_projects(
    limited: Callable[..., FlaskClient],
) -> None:
    client = limited(projects_api_rate_limit="9/day", anonymous_projects_api_rate_limit="1/day")
    token = token_of(client, "alice")
    here, again, elsewhere = (
        ask(client, "PROJECTS", address=address)
        for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2")
    )
    assert [each.status_code for each in (here, again, elsewhere)] == [200, 429, 200]
    assert rate_limit_headers(ask(client, "PROJECTS", token))[0] == 9


def test_the_headers_show_the_limit_with_fewer_remaining_requests(
    limited: Callable[..., FlaskClient],
) -> None:
    client = limited(api_rate_limit="3/day", user_api_rate_limit="2/day")
    token = token_of(client, "alice")
    first, other = ask(client, "USER", token), ask(client, "USERS", token)
    assert rate_limit_headers(first) == (2, 1, 1)
    assert rate_limit_headers(other) == (3, 2, 1)
    # Requests above the API's limit do not count towards the family's limit.
    statuses = [ask(client, "USER", token).status_code for _ in range(3)]
    assert statuses == [200, 429, 429]


@pytest.mark.parametrize("value", ["600/minute from", "from 18.0", "off from 18.0", "5/day from x"])
def test_a_rate_with_an_invalid_release_is_rejected(value: str) -> None:
    with pytest.raises(SettingsError, match="USERS_API_RATE_LIMIT must be"):
        parse_setting_value("users_api_rate_limit", value)


def test_api_operations_are_limited_by_the_family_in_their_decorator(
    limited: Callable[..., FlaskClient],
) -> None:
    client = limited(users_api_rate_limit="1/day", user_api_rate_limit="2/day", api_rate_limit="")
    headers = {"PRIVATE-TOKEN": token_of(client, "alice", scopes="read_user")}
    listed = [client.get("/api/v4/users", headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in listed] == [200, 429]
    assert rate_limit_headers(listed[1]) == (1, 2, 0)
    own_id = client.get("/api/v4/user", headers=headers).get_json()["id"]
    shown = client.get(f"/api/v4/users/{own_id}", headers=headers)
    assert (shown.status_code, rate_limit_headers(shown)) == (200, (2, 1, 1))
