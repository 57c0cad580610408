"""Tests of behavior common to the whole API: unknown addresses, tokens in addresses, and times."""

import re
from collections.abc import Iterator
from itertools import product
from typing import Any
from urllib.parse import quote

import pytest
import requests

from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import alice, make_project, make_user, signed_in
from tests.support.accounts.personal_tokens import make_token
from tests.support.alerts.senders import connect
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


UNKNOWN = (
    *("", "/", "/user/", "/users/x", "/projects/1/nothing"),
    *("/acme/shop/alerts/notify.json", "/acme/-/alerts", "/personal_access_tokens/x"),
)


def test_an_unknown_address_is_not_found_for_any_method(gatebell: LiveGatebell) -> None:
    asked = [*((method, "/nothing") for method in METHODS), *product(("GET", "POST"), UNKNOWN)]
    for method, path in asked:
        answer = machine(gatebell).request(method, f"{gatebell.url}/api/v4{path}")
        assert answer.status_code == 404, (method, path)
        assert answer.headers["Content-Type"] == "application/json"
        assert method == "HEAD" or answer.json() == {"message": "404 Not Found"}


@pytest.mark.long
def test_a_project_can_have_the_name_of_a_resource(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    token = {"PRIVATE-TOKEN": make_token(gatebell, owner).clear}
    group = make_project(gatebell, owner).partition("/")[0]

    def send(method: str, path: str, **sent: Any) -> requests.Response:
        url = f"{gatebell.url}/api/v4{path}"
        return machine(gatebell).request(method, url, headers=token, **sent)

    number = send("GET", f"/groups/{group}").json()["id"]
    for word in ("members", "environments", "archive", "access_tokens"):
        made = send("POST", "/projects", json={"path": word, "namespace_id": number}).json()
        for slash in ("%2F", "%2f"):
            assert send("GET", f"/projects/{group}{slash}{word}").json() == made
            below = send("GET", f"/projects/{group}{slash}{word}/environments?per_page=1")
            assert below.status_code == 200
            assert f"/api/v4/projects/{group}%2F{word}/environments?" in below.headers["Link"]


def test_links_of_lists_are_valid_urls_for_any_path(gatebell: LiveGatebell) -> None:
    headers = {"PRIVATE-TOKEN": make_token(gatebell, make_user(gatebell)).clear}
    name = quote("名 \x18<%?", safe="")
    url = f"{gatebell.url}/api/v4/users/{name}/projects?topic_id=1"
    answer = machine(gatebell).get(url, headers=headers)
    assert (answer.status_code, answer.json()) == (200, [])
    assert f"<{url}&page=1&" in answer.headers["Link"]


def test_an_unsupported_method_is_rejected_with_the_supported_methods(
    gatebell: LiveGatebell,
) -> None:
    answer = machine(gatebell).put(f"{gatebell.url}/api/v4/version")
    assert answer.status_code == 405
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}


def test_a_private_token_can_be_sent_in_the_address(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    token = make_token(gatebell, person).clear
    answer = machine(gatebell).get(f"{gatebell.url}/api/v4/user?private_token={token}")
    assert answer.status_code == 200
    assert answer.json()["username"] == person.username
    assert answer.headers["Cache-Control"] == "private, no-cache"
    for rest in ("", "unknown"):
        assert machine(gatebell).get(f"{gatebell.url}/api/v4/user?private_token={rest}").json() == {
            "message": "401 Unauthorized"
        }


def test_a_private_token_in_the_address_with_another_token_is_rejected(
    gatebell: LiveGatebell,
) -> None:
    token, other = (make_token(gatebell, alice(gatebell)).clear for _ in range(2))
    address = f"{gatebell.url}/api/v4/user?private_token={token}"
    for answer in (
        machine(gatebell).get(address, headers={"PRIVATE-TOKEN": other}),
        machine(gatebell).get(address, headers={"Authorization": f"Bearer {other}"}),
        machine(gatebell).get(f"{address}&access_token={other}"),
        machine(gatebell).get(f"{address}&private_token={other}"),
    ):
        assert answer.status_code == 400
        assert answer.json()["error"] == "invalid_request"
    assert machine(gatebell).get(f"{address}&private_token={token}").status_code == 200


def test_a_private_token_in_the_address_is_in_no_link_and_no_log(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    make_token(gatebell, person)
    token = make_token(gatebell, person).clear
    project = connect(gatebell)
    for title in "ab":
        project.accepted(title=title)
    owner = make_token(gatebell, alice(gatebell)).clear
    alerts = f"projects/{quote(project.project, safe='')}/alert_management_alerts"
    for path, secret in (("personal_access_tokens", token), (alerts, owner)):
        answer = machine(gatebell).get(
            f"{gatebell.url}/api/v4/{path}?per_page=1&private_token={secret}"
        )
        assert answer.status_code == 200
        assert 'rel="next"' in answer.headers["Link"]
        assert secret not in answer.headers["Link"]
        assert secret not in gatebell.log_text()


def times_in(value: Any, name: str = "") -> Iterator[str]:
    """Find the values of all time fields."""
    if isinstance(value, dict):
        for each, inner in value.items():
            yield from times_in(inner, each)
    elif isinstance(value, list):
        for inner in value:
            yield from times_in(inner, name)
    # The expiry is a date.
    elif name.endswith("_at") and name != "expires_at" and value is not None:
        yield value


def test_all_times_have_the_same_format(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(
        platform_environment_name="prod", start_time="2026-11-20T10:00:00+02:00",
        end_time="2026-11-20T10:00:01.123456+02:00", fingerprint="x",
    )  # fmt: skip
    signed_in(gatebell, get_shared_administrator(gatebell))  # The sign-in creates an audit event.
    project = f"/projects/{quote(endpoint.project, safe='')}"
    alice_token = {"PRIVATE-TOKEN": make_token(gatebell, alice(gatebell)).clear}
    root_token = {"PRIVATE-TOKEN": make_token(gatebell, get_shared_administrator(gatebell)).clear}

    def get(path: str, headers: dict[str, str]) -> requests.Response:
        answer = machine(gatebell).get(f"{gatebell.url}/api/v4{path}", headers=headers)
        assert answer.status_code == 200, answer.text
        return answer

    answers = [
        get("/user", alice_token),
        get("/personal_access_tokens", alice_token),
        get(f"{project}/alert_management_alerts?status=all", alice_token),
        get(f"{project}/alert_management_alerts/1", alice_token),
        get(f"{project}/environments", alice_token),
        get("/audit_events", root_token),
    ]
    for answer in answers:
        found = list(times_in(answer.json()))
        assert found, answer.url
        assert [each for each in found if not TIME.fullmatch(each)] == [], answer.url
    assert answers[3].json()["started_at"] == "2026-11-20T08:00:00.000Z"
