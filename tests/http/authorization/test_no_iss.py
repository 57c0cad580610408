"""Applications that were written for GitLab: no `iss` with codes and errors."""

import pytest
import requests

from tests.http.api.projects.test_projects_api import script_of
from tests.support.accounts.administration import root
from tests.support.accounts.people import CALLBACK, ClientCredentials, alice, open_browser
from tests.support.oauth.oauth_wire import ask, decide, landing, machine
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases


def made(gatebell: LiveGatebell, **more: object) -> ClientCredentials:
    """Make an application of the instance by the API."""
    wanted = {"name": "Old client", "redirect_uri": CALLBACK, "scopes": "read_user", **more}
    answer = script_of(gatebell, root(gatebell)).send("POST", "/applications", json=wanted)
    assert answer.status_code == 201, answer.text
    body = answer.json()
    assert body["omit_iss"] is bool(more)
    return ClientCredentials(
        id=body["id"],
        client_id=body["application_id"],
        secret=body["secret"],
        redirect_uri=CALLBACK,
        scopes="read_user",
    )


@pytest.mark.parametrize("changes", [{}, {"omit_iss": True}])
def test_an_application_written_for_gitlab_gets_no_iss(
    gatebell: LiveGatebell, changes: dict[str, bool]
) -> None:
    client, browser = made(gatebell, **changes), open_browser(gatebell, alice(gatebell))
    expected = set() if changes else {"iss"}

    def question() -> requests.Response:
        return ask(browser, gatebell, client, scope="read_user")

    denied = landing(decide(browser, question(), "cancel"))
    assert set(denied) - {"error_description"} == {"error", "state"} | expected
    approved = landing(decide(browser, question(), "authorize"))
    assert set(approved) == {"code", "state"} | expected
    wrong = landing(ask(browser, gatebell, client, scope="no_such_scope"))
    assert set(wrong) - {"error_description"} == {"error", "state"} | expected


def test_the_metadata_says_what_all_others_get(gatebell: LiveGatebell) -> None:
    path = "/.well-known/oauth-authorization-server"
    document = machine(gatebell).get(gatebell.url + path).json()
    assert document["authorization_response_iss_parameter_supported"] is True
