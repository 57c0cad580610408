"""Tests that access created by an application ends with the application's own access."""

from typing import Any

import pytest

from domain.core.keyring import Keyring
from models import Contact
from tests.http.api.projects.test_invitations_api import link_to
from tests.http.api.projects.test_projects_api import made
from tests.http.api.tokens.test_made_tokens import Case, case_of, revoke_on_the_page
from tests.support.accounts.people import database_of, open_browser, settings_of, unique
from tests.support.accounts.personal_tokens import Api
from tests.support.accounts.resource_tokens import script_of
from tests.support.oauth.oauth_wire import parse_token_pair, refresh
from tests.support.service.live import LiveGatebell
from web.jobs.retention import pause_unauthorized_webhooks

pytestmark = pytest.mark.one_database("sqlite")


@pytest.fixture
def case(mailing: LiveGatebell) -> Case:
    return case_of(mailing)


def project_of(case: Case) -> str:
    return case.project.by_id.removesuffix("/access_tokens")


def webhook_of(case: Case, script: Api) -> Any:
    body = {"url": "http://127.0.0.1:1/app"}
    return made(script.send_request("POST", f"{project_of(case)}/webhooks", json=body))


def pause_reason(case: Case, number: int) -> str | None:
    pause_unauthorized_webhooks(settings_of(case.gatebell))
    path = f"{project_of(case)}/webhooks/{number}"
    reason: str | None = made(script_of(case.gatebell, case.person).send_request("GET", path), 200)[
        "pause_reason"
    ]
    return reason


def test_a_calendar_address_created_by_an_application_ends(case: Case) -> None:
    url = made(case.application.send_request("POST", "/user/on_call/calendar"))["url"]
    assert case.gatebell.http().get(url).status_code == 200
    pair = parse_token_pair(refresh(case.gatebell, case.client, case.pair.refresh))
    assert case.gatebell.http().get(url).status_code == 200
    assert (
        Api(case.gatebell, pair.access).send_request("GET", "/user/on_call/calendar").status_code
        == 200
    )
    revoke_on_the_page(case)
    assert case.gatebell.http().get(url).status_code == 404
    own = script_of(case.gatebell, case.person)
    assert own.send_request("GET", "/user/on_call/calendar").status_code == 404
    mine = made(own.send_request("POST", "/user/on_call/calendar"))["url"]
    assert case.gatebell.http().get(mine).status_code == 200


def test_an_invitation_sent_by_an_application_ends(case: Case) -> None:
    email, path = f"{unique('friend')}@people.example", f"{project_of(case)}/invitations"
    body = {"email": email, "access_level": 50}
    assert made(case.application.send_request("POST", path, json=body)) == {"status": "success"}
    link = link_to(case.gatebell, email)
    browser = case.gatebell.http()
    assert browser.get(link).status_code == 200
    revoke_on_the_page(case)
    assert browser.get(link).status_code == 404
    own = script_of(case.gatebell, case.person)
    assert own.send_request("GET", path).json() == []
    # The user can still invite others.
    assert made(own.send_request("POST", path, json=body)) == {"status": "success"}


def test_a_contact_confirmed_by_an_application_must_be_confirmed_again(case: Case) -> None:
    own, settings = script_of(case.gatebell, case.person), settings_of(case.gatebell)
    numbers = []
    for number, confirms in enumerate((case.application, own)):
        body = {"type": "apprise", "address": f"ntfy://127.0.0.1:1/alerts{number}"}
        contact = made(case.application.send_request("POST", "/user/contacts", json=body))
        with database_of(case.gatebell) as session:
            row = session.get_one(Contact, contact["id"])
            code = Keyring(settings.secret_key).decrypt(row.code_ciphertext or "")
        path = f"/user/contacts/{contact['id']}"
        made(confirms.send_request("POST", f"{path}/confirm", json={"code": code}), 200)
        numbers.append(path)
    pause_unauthorized_webhooks(settings)
    revoke_on_the_page(case)
    pause_unauthorized_webhooks(settings)
    states = [made(own.send_request("GET", each), 200)["confirmed_at"] is None for each in numbers]
    assert states == [True, False]


def test_a_webhook_with_a_url_from_an_application_is_paused(case: Case) -> None:
    own = script_of(case.gatebell, case.person)
    of_application, mine, taken = (
        webhook_of(case, script)["id"] for script in (case.application, own, own)
    )
    moved = {"url": "http://127.0.0.1:1/elsewhere"}
    path = f"{project_of(case)}/webhooks"
    made(case.application.send_request("PUT", f"{path}/{taken}", json=moved), 200)
    made(
        case.application.send_request("PUT", f"{path}/{mine}", json={"events": ["alert.opened"]}),
        200,
    )
    assert pause_reason(case, of_application) is None
    revoke_on_the_page(case)
    assert [pause_reason(case, each) for each in (of_application, mine, taken)] == [
        "application",
        None,
        "application",
    ]
    namespace = made(own.send_request("GET", project_of(case)), 200)["path_with_namespace"]
    page = open_browser(case.gatebell, case.person).get(
        f"{case.gatebell.url}/{namespace}/-/settings/webhooks/{of_application}"
    )
    assert "no longer has access" in page.text
    made(own.send_request("PUT", f"{path}/{of_application}", json={"active": True}), 200)
    assert pause_reason(case, of_application) is None


def test_a_later_authorization_does_not_revive_a_deleted_calendar_address(case: Case) -> None:
    """Authorize again after a deletion, because SQLite reuses the highest id of deleted rows."""
    url = made(case.application.send_request("POST", "/user/on_call/calendar"))["url"]
    assert case.gatebell.http().get(url).status_code == 200
    case.gatebell.cli("applications", "delete", str(case.client.id))
    assert case.gatebell.http().get(url).status_code == 404
    case_of(case.gatebell)
    assert case.gatebell.http().get(url).status_code == 404
