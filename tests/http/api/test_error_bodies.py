"""Tests of bodies of errors, which name each wrong parameter in backticks."""

import pytest
import requests

from tests.support.accounts.people import make_project, make_user
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


@pytest.fixture
def headers(gatebell: LiveGatebell) -> dict[str, str]:
    return {"PRIVATE-TOKEN": make_token(gatebell, make_user(gatebell)).clear}


def test_every_wrong_parameter_of_a_query_is_named(
    gatebell: LiveGatebell, headers: dict[str, str]
) -> None:
    url = f"{gatebell.url}/api/v4/alert_management_alerts"
    query = "page=x&sort=up&sort=down&severity=none&nothing=1&nobody=2"
    answer = requests.get(f"{url}?{query}", headers=headers, timeout=30)
    assert answer.status_code == 400
    body = answer.json()
    named = {"page", "sort", "severity", "nothing", "nobody"}
    assert {each["field"] for each in body["errors"]} == named
    assert all(name in body["error"] for name in named)
    assert body["error"].count("Known parameters: ") == 1
    assert body["error"].endswith(".")


def test_every_wrong_parameter_of_a_body_is_named(
    gatebell: LiveGatebell, headers: dict[str, str]
) -> None:
    url = f"{gatebell.url}/api/v4/personal_access_tokens/self/rotate"
    answer = requests.post(
        url, headers=headers, json={"expires_at": "soon", "days": "x"}, timeout=30
    )
    assert answer.status_code == 400
    assert "expires_at" in answer.json()["error"]


def test_errors_have_straight_quotes_and_no_escaped_characters(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    project = make_project(gatebell, owner).replace("/", "%2F")
    headers = {"PRIVATE-TOKEN": make_token(gatebell, owner).clear}
    url = f"{gatebell.url}/api/v4/projects/{project}/silences"
    sent = {"matchers": 'a="é', "duration": "5y", "comment": "x"}
    answer = requests.post(url, headers=headers, json=sent, timeout=30)
    assert answer.status_code == 400
    assert not {"“", "”"} & set(answer.text)
    assert "\\u" not in answer.text
    lone = requests.post(url, headers=headers, data=b'{"matchers": "\\ud800"}', timeout=30)
    assert lone.status_code in {400, 415}
