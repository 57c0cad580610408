"""Tests of rules for every API operation: parameters and conditional requests."""

from typing import Any

import pytest
import requests

from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import alice
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


def call(
    gatebell: LiveGatebell, endpoint: Endpoint, method: str, query: str = "", **sent: Any
) -> requests.Response:
    at = f"/projects/{endpoint.project}/environments"
    return api_caller(gatebell, alice(gatebell), at)(method, query, **sent)


@pytest.mark.long
@pytest.mark.both_databases
def test_an_unchanged_response_is_not_sent_again(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    made = call(gatebell, endpoint, "POST", json={"name": "production"}).json()
    for query in (f"/{made['id']}", ""):
        first = call(gatebell, endpoint, "GET", query)
        known = {"If-None-Match": first.headers["ETag"]}
        again = call(gatebell, endpoint, "GET", query, headers=known)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == first.headers["ETag"]
        assert again.headers["Cache-Control"] == "private, no-cache"
    before = call(gatebell, endpoint, "GET").headers["ETag"]
    call(gatebell, endpoint, "POST", json={"name": "staging"})
    changed = call(gatebell, endpoint, "GET", headers={"If-None-Match": before})
    assert (changed.status_code, len(changed.json())) == (200, 2)


def test_an_invalid_field_of_a_body_is_named_with_the_reason(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for value, reason in (
        (5, "must be a string"),
        (["production"], "must be a string"),
        ("a\x00b", "must not contain a NUL character"),
    ):
        answer = call(gatebell, endpoint, "POST", json={"name": value})
        assert answer.status_code == 400
        errors = [{"field": "name", "message": reason}]
        assert answer.json() == {"error": f"`name` {reason}.", "errors": errors}


def test_parameters_can_be_sent_as_json_as_a_form_or_in_the_query(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    sent: list[dict[str, Any]] = [
        {"json": {"name": "one", "unknown": {}}},
        {"data": {"name": "two"}},
        {"params": {"name": "three"}},
    ]
    for each in sent:
        assert call(gatebell, endpoint, "POST", **each).status_code == 201
    for wrong in (b"[]", b"{", b"\xff", b'{"name": NaN}'):
        answer = call(
            gatebell, endpoint, "POST", data=wrong, headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, set(answer.json())) == (400, {"error"}), wrong


def test_a_list_rejects_invalid_values(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for query, problem in (
        ("?name=a&name=b", "`name` can be given only once."),
        ("?page=x", "`page` must be a whole number."),
        ("?per_page=-1", "`per_page` must be at least 0."),
        ("?sort=desc", "`sort` must be asc."),
    ):
        answer = call(gatebell, endpoint, "GET", query)
        assert answer.status_code == 400
        assert answer.json()["error"].startswith(problem)
