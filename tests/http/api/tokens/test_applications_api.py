"""Tests of `/api/v4/applications`, the applications of the instance."""

from typing import Any

import pytest
import requests

from tests.support.accounts.administration import find_last_event, get_shared_administrator
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import (
    CALLBACK,
    ClientCredentials,
    alice,
    bob,
    make_application,
    signed_in,
    unique,
)
from tests.support.oauth.oauth_wire import (
    assert_refused,
    open_authorization,
    parse_redirect,
    redeem,
    submit_decision,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

FIELDS = {
    *("id", "application_id", "application_name", "callback_url", "confidential", "scopes"),
    "omit_iss",
}


def call(
    gatebell: LiveGatebell, method: str, path: str = "", *, granted: str = "api", **body: Any
) -> requests.Response:
    """Send a request as the administrator."""
    script = api_caller(
        gatebell, get_shared_administrator(gatebell), "/applications", scopes=granted
    )
    return script(method, path, json=body or None)


def create(gatebell: LiveGatebell, **changes: Any) -> dict[str, Any]:
    body = {"name": unique("Wiki"), "redirect_uri": CALLBACK, "scopes": "read_user", **changes}
    answer = call(gatebell, "POST", **body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_a_created_application_works_with_its_secret(gatebell: LiveGatebell) -> None:
    made = create(gatebell, scopes="read_user api", redirect_uri=f"{CALLBACK}\nhttp://127.0.0.1/cb")
    assert set(made) == FIELDS | {"secret"}
    assert made["callback_url"] == f"{CALLBACK}\nhttp://127.0.0.1/cb"
    assert find_last_event(gatebell, made["application_name"]).kind == "application.registered"
    assert (made["scopes"], made["confidential"]) == (["api", "read_user"], True)
    client = ClientCredentials(
        id=made["id"],
        client_id=made["application_id"],
        secret=made["secret"],
        redirect_uri=CALLBACK,
        scopes="read_user",
    )
    browser = signed_in(gatebell, alice(gatebell))
    code = parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, client)))[
        "code"
    ]
    assert redeem(gatebell, client, code).status_code == 200


def test_the_list_contains_no_secrets_and_no_applications_of_users(gatebell: LiveGatebell) -> None:
    made = create(gatebell, confidential=False)
    theirs = make_application(gatebell, bob(gatebell))
    answer = call(gatebell, "GET", "?per_page=100", granted="read_api")
    assert answer.headers["X-Page"] == "1"
    listed = {each["application_id"]: each for each in answer.json()}
    assert listed[made["application_id"]] == {
        name: value for name, value in made.items() if name != "secret"
    }
    assert listed[made["application_id"]]["confidential"] is False
    assert theirs.client_id not in listed


@pytest.mark.both_databases
def test_the_list_of_applications_has_pages(gatebell: LiveGatebell) -> None:
    older, newer = create(gatebell), create(gatebell)
    first = call(gatebell, "GET", "?per_page=1")
    second = call(gatebell, "GET", "?per_page=1&page=2")
    assert [each["id"] for each in (*first.json(), *second.json())] == [newer["id"], older["id"]]
    assert first.headers["X-Next-Page"] == "2"


@pytest.mark.both_databases
def test_a_renewed_secret_replaces_the_old_one(gatebell: LiveGatebell) -> None:
    made = create(gatebell)
    answer = call(gatebell, "POST", f"/{made['id']}/renew-secret")
    assert answer.status_code == 201
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.json() == {**made, "secret": answer.json()["secret"]}
    assert answer.json()["secret"] != made["secret"]
    for secret, status in ((made["secret"], 401), (answer.json()["secret"], 200)):
        asked = requests.post(
            f"{gatebell.url}/oauth/introspect",
            data={"token": "x"},
            auth=(made["application_id"], secret),
            timeout=30,
        )
        assert asked.status_code == status


def test_a_deleted_application_is_gone(gatebell: LiveGatebell) -> None:
    made = create(gatebell)
    assert call(gatebell, "DELETE", f"/{made['id']}").status_code == 204
    assert call(gatebell, "DELETE", f"/{made['id']}").status_code == 404
    refused = requests.post(
        f"{gatebell.url}/oauth/token",
        data={
            "grant_type": "refresh_token",
            "refresh_token": "x",
            "client_id": made["application_id"],
            "client_secret": made["secret"],
        },
        timeout=30,
    )
    assert_refused(refused, "invalid_client", 401)


def test_an_application_of_a_user_is_not_found(gatebell: LiveGatebell) -> None:
    theirs = make_application(gatebell, bob(gatebell))
    for method, ending in (("DELETE", ""), ("POST", "/renew-secret")):
        assert call(gatebell, method, f"/{theirs.id}{ending}").status_code == 404


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"name": None}, "`name` is missing"),
    ({"redirect_uri": None}, "`redirect_uri` is missing"),
    ({"scopes": None}, "`scopes` is missing"),
    ({"name": ""}, "`name` is empty"),
    ({"redirect_uri": "mailto:a@b.example"}, "mailto:, which is forbidden"),
    ({"scopes": "read_registry"}, "read_registry is for access tokens"),
    ({"redirect_uri": "nowhere"}, "nowhere"),
    ({"redirect_uri": ["https://a.example"]}, "`redirect_uri` must be a string"),
    ({"scopes": []}, "`scopes` is empty"),
    ({"scopes": "everything"}, "everything"),
    ({"scopes": [1]}, "`scopes.0` must be a string"),
    ({"confidential": "maybe"}, "`confidential` must be true or false"),
    ({"name": "a\nb"}, "on one line"),
    ({"name": "nul\0"}, "on one line"),
    ({"name": "x" * 256}, "at most"),
)


def test_an_invalid_parameter_is_named(gatebell: LiveGatebell) -> None:
    for changes, error in WRONG:
        body = {"name": "Wiki", "redirect_uri": CALLBACK, "scopes": "read_user", **changes}
        answer = call(gatebell, "POST", **body)
        assert answer.status_code == 400, changes
        assert error in answer.json()["error"]


def test_an_application_for_devices_needs_no_redirect_uri(gatebell: LiveGatebell) -> None:
    assert create(gatebell, redirect_uri="")["callback_url"] == ""
