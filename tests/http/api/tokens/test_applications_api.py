"""/api/v4/applications: the instance's own applications, for administrators' scripts."""

from typing import Any

import pytest
import requests

from tests.support.accounts.administration import last_event, root
from tests.support.accounts.people import (
    CALLBACK,
    ClientCredentials,
    alice,
    bob,
    make_application,
    signed_in,
    unique,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.oauth.oauth_wire import ask, assert_refused, decide, landing, redeem
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

ADDRESS = "/api/v4/applications"
FIELDS = {
    *("id", "application_id", "application_name", "callback_url", "confidential", "scopes"),
    "omit_iss",
}


def call(
    gatebell: LiveGatebell, method: str, path: str = "", *, granted: str = "api", **body: Any
) -> requests.Response:
    """Call as the administrator."""
    token = make_token(gatebell, root(gatebell), scopes=granted).clear
    return requests.request(
        method,
        f"{gatebell.url}{ADDRESS}{path}",
        headers={"PRIVATE-TOKEN": token},
        json=body or None,
        timeout=30,
    )


def create(gatebell: LiveGatebell, **changes: Any) -> dict[str, Any]:
    body = {"name": unique("Wiki"), "redirect_uri": CALLBACK, "scopes": "read_user", **changes}
    answer = call(gatebell, "POST", **body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_an_application_is_made_and_its_secret_works(gatebell: LiveGatebell) -> None:
    made = create(gatebell, scopes="read_user api", redirect_uri=f"{CALLBACK}\nhttp://127.0.0.1/cb")
    assert set(made) == FIELDS | {"secret"}
    assert made["callback_url"] == f"{CALLBACK}\nhttp://127.0.0.1/cb"
    assert last_event(gatebell, made["application_name"]).kind == "application.registered"
    assert (made["scopes"], made["confidential"]) == (["api", "read_user"], True)
    client = ClientCredentials(
        id=made["id"],
        client_id=made["application_id"],
        secret=made["secret"],
        redirect_uri=CALLBACK,
        scopes="read_user",
    )
    browser = signed_in(gatebell, alice(gatebell))
    code = landing(decide(browser, ask(browser, gatebell, client)))["code"]
    assert redeem(gatebell, client, code).status_code == 200


def test_the_list_has_no_secret_and_no_application_of_a_user(gatebell: LiveGatebell) -> None:
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
def test_the_list_comes_in_pages(gatebell: LiveGatebell) -> None:
    older, newer = create(gatebell), create(gatebell)
    first = call(gatebell, "GET", "?per_page=1")
    second = call(gatebell, "GET", "?per_page=1&page=2")
    assert [each["id"] for each in (*first.json(), *second.json())] == [newer["id"], older["id"]]
    assert first.headers["X-Next-Page"] == "2"


@pytest.mark.both_databases
def test_a_renewed_secret_takes_over(gatebell: LiveGatebell) -> None:
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


@pytest.mark.parametrize(("method", "ending"), [("DELETE", ""), ("POST", "/renew-secret")])
def test_an_application_of_a_user_is_out_of_reach(
    gatebell: LiveGatebell, method: str, ending: str
) -> None:
    theirs = make_application(gatebell, bob(gatebell))
    assert call(gatebell, method, f"/{theirs.id}{ending}").status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("POST", ""), ("DELETE", "/1"), ("POST", "/1/renew-secret")],
)
def test_only_administrators_may(gatebell: LiveGatebell, method: str, path: str) -> None:
    url = f"{gatebell.url}{ADDRESS}{path}"
    token = make_token(gatebell, alice(gatebell)).clear
    answer = requests.request(method, url, headers={"PRIVATE-TOKEN": token}, timeout=30)
    assert answer.status_code == 403
    assert requests.request(method, url, timeout=30).status_code == 401


@pytest.mark.parametrize(("method", "path"), [("POST", ""), ("DELETE", "/1")])
def test_a_token_that_only_reads_changes_nothing(
    gatebell: LiveGatebell, method: str, path: str
) -> None:
    answer = call(gatebell, method, path, granted="read_api")
    assert (answer.status_code, answer.json()["error"]) == (403, "insufficient_scope")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"name": None}, "name is missing"),
        ({"name": ""}, "name is empty"),
        ({"redirect_uri": "mailto:a@b.example"}, "mailto:, which is forbidden"),
        ({"scopes": "read_registry"}, "read_registry is for access tokens"),
        ({"redirect_uri": "nowhere"}, "nowhere"),
        ({"redirect_uri": ["https://a.example"]}, "redirect_uri must be a string"),
        ({"scopes": []}, "scopes is empty"),
        ({"scopes": "everything"}, "everything"),
        ({"scopes": [1]}, "scopes.0 must be a string"),
        ({"confidential": "maybe"}, "confidential must be true or false"),
        ({"name": "a\nb"}, "on one line"),
        ({"name": "nul\0"}, "on one line"),
        ({"name": "x" * 256}, "at most"),
    ],
)
def test_bad_parameters_are_named(
    gatebell: LiveGatebell, changes: dict[str, Any], error: str
) -> None:
    body = {"name": "Wiki", "redirect_uri": CALLBACK, "scopes": "read_user", **changes}
    answer = call(gatebell, "POST", **body)
    assert answer.status_code == 400
    assert error in answer.json()["error"]


@pytest.mark.parametrize("missing", ["name", "redirect_uri", "scopes"])
def test_a_missing_parameter_is_named(gatebell: LiveGatebell, missing: str) -> None:
    body = {"name": "Wiki", "redirect_uri": CALLBACK, "scopes": "read_user"}
    del body[missing]
    answer = call(gatebell, "POST", **body)
    assert (answer.status_code, answer.json()["error"]) == (400, f"{missing} is missing")


def test_an_empty_redirect_uri_is_for_devices_alone(gatebell: LiveGatebell) -> None:
    assert create(gatebell, redirect_uri="")["callback_url"] == ""
