"""Tests that tokens created by an application end with its access and share its binding."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
import requests
from sqlalchemy import select, update

from models import AccessToken, Application, PersonalAccessToken
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    bob,
    database_of,
    make_application,
    make_project,
    make_user,
    open_browser,
)
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.resource_tokens import (
    Namespace,
    day,
    get_namespace,
    make_bot_token,
    post,
    script_of,
)
from tests.support.oauth.device_wire import approve, codes, poll
from tests.support.oauth.oauth_wire import (
    PKCE,
    VERIFIER,
    TokenPair,
    age_refreshes,
    machine,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    post_token,
    redeem,
    refresh,
    revoke,
    submit_decision,
)
from tests.support.oauth.proofs import Prover, redeem_with_key
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("sqlite")


@dataclass(frozen=True)
class Case:
    """A user with a project and an authorized application."""

    gatebell: LiveGatebell
    person: Person
    browser: requests.Session
    project: Namespace
    client: ClientCredentials
    pair: TokenPair

    @property
    def application(self) -> Api:
        """Return a client with the application's token."""
        return Api(self.gatebell, self.pair.access)

    def made(self) -> Api:
        """Return a client with a project token that the application created."""
        return Api(self.gatebell, make_bot_token(self.application, self.project).clear)


def is_good(script: Api) -> bool:
    return script.send_request("GET", "/user").status_code == 200


def case_of(gatebell: LiveGatebell, **person: bool) -> Case:
    somebody = make_user(gatebell, **person)  # type: ignore[arg-type]
    browser = open_browser(gatebell, somebody)
    project = get_namespace(gatebell, "projects", make_project(gatebell, somebody))
    client = make_application(gatebell, bob(gatebell), scopes="api")
    code = parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, client)))[
        "code"
    ]
    pair = parse_token_pair(redeem(gatebell, client, code))
    if person:
        # This is the state after an application of the instance got `admin_mode`.
        mine = AccessToken.application_id == client.id
        with database_of(gatebell) as session:
            session.execute(update(AccessToken).where(mine).values(scopes="api admin_mode"))
    return Case(gatebell, somebody, browser, project, client, pair)


@pytest.fixture
def case(gatebell: LiveGatebell) -> Case:
    return case_of(gatebell)


def revoke_on_the_page(case: Case) -> None:
    page = case.browser.get(f"{case.gatebell.url}/-/user_settings/authorized_applications")
    assert submit(case.browser, page, form_to(page, "/revoke")).status_code == 302


def give_the_token_back(case: Case) -> None:
    assert revoke(case.gatebell, case.client, case.pair.refresh).status_code == 200


def delete_the_application(case: Case) -> None:
    path = f"/-/user_settings/applications/{case.client.id}/delete"
    browser = open_browser(case.gatebell, bob(case.gatebell))
    page = browser.get(case.gatebell.url + path)
    assert submit(browser, page, form_to(page, "/delete")).status_code == 302


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.parametrize("end", [revoke_on_the_page, give_the_token_back, delete_the_application])
def test_tokens_created_by_an_application_end_with_its_access(
    case: Case, end: Callable[[Case], None]
) -> None:
    made, rotated = case.made(), case.made()
    again = rotated.send_request("POST", f"{case.project.by_id}/self/rotate")
    rotated = Api(case.gatebell, again.json()["token"])
    own = script_of(case.gatebell, case.person)
    assert is_good(made)
    assert is_good(rotated)
    end(case)
    assert not is_good(made)
    assert not is_good(rotated)
    assert is_good(own)
    # The bots of these tokens are removed, too.
    listed = own.send_request("GET", case.project.by_id, params={"state": "active"})
    assert listed.json() == []


@pytest.mark.long
@pytest.mark.both_databases
def test_a_stolen_refresh_token_also_ends_created_tokens(gatebell: LiveGatebell) -> None:
    case = case_of(gatebell)
    phone = make_application(gatebell, bob(gatebell), scopes="api", confidential=False)
    code = parse_redirect(
        submit_decision(case.browser, open_authorization(case.browser, gatebell, phone, **PKCE))
    )["code"]
    pair = parse_token_pair(
        redeem(gatebell, phone, code, client_secret=None, code_verifier=VERIFIER)
    )
    made = Api(gatebell, make_bot_token(Api(gatebell, pair.access), case.project).clear)
    refresh(gatebell, phone, pair.refresh, client_secret=None)
    assert is_good(made)
    age_refreshes(gatebell, timedelta(minutes=1))
    refresh(gatebell, phone, pair.refresh, client_secret=None)
    assert not is_good(made)


@pytest.mark.long
def test_a_created_token_survives_refreshes_and_ends_with_the_application(case: Case) -> None:
    made = case.made()
    page = case.browser.get(case.gatebell.url + case.project.page)
    assert "Created by an application, revoked when the application loses access" in page.text
    parse_token_pair(refresh(case.gatebell, case.client, case.pair.refresh))
    assert is_good(made)
    revoke_on_the_page(case)
    assert not is_good(made)


@pytest.mark.both_databases
def test_tokens_created_by_a_created_token_also_end(gatebell: LiveGatebell) -> None:
    case = case_of(gatebell, admin=True)
    someone = make_token(gatebell, case.person)
    made = case.application.send_request(
        "POST",
        f"/users/{someone.user_id}/personal_access_tokens",
        json={"name": "x", "scopes": ["api"], "expires_at": day(30)},
    )
    personal = Api(gatebell, made.json()["token"])
    grandchild = Api(gatebell, make_bot_token(personal, case.project).clear)
    # The rules for applications also apply to tokens that applications created.
    assert personal.send_token_request("POST", f"/{someone.id}/rotate").status_code == 403
    assert is_good(grandchild)
    give_the_token_back(case)
    assert not is_good(personal)
    assert not is_good(grandchild)
    assert is_good(Api(gatebell, someone.clear))


@pytest.mark.long
def test_a_token_created_with_a_bound_token_is_bound_to_the_same_key(
    gatebell: LiveGatebell,
) -> None:
    case, key, thief = case_of(gatebell), Prover(), Prover()
    phone = make_application(gatebell, bob(gatebell), scopes="api", confidential=False)
    code = parse_redirect(
        submit_decision(case.browser, open_authorization(case.browser, gatebell, phone, **PKCE))
    )["code"]
    token = parse_token_pair(redeem_with_key(gatebell, phone, code, key)).access
    address = f"{gatebell.url}/api/v4{case.project.by_id}"
    answer = machine(gatebell).post(
        address,
        json={"name": "x", "scopes": ["api"], "access_level": 30},
        headers=key.showing(token, address, method="POST"),
    )
    assert answer.status_code == 201, answer.text
    made = answer.json()["token"]
    assert Api(gatebell, made).send_request("GET", "/user").status_code == 401
    user = f"{gatebell.url}/api/v4/user"
    for headers, status in (
        ({"Authorization": f"Bearer {made}"}, 401),
        (thief.showing(made, user), 401),
        (key.showing(made, user), 200),
    ):
        assert machine(gatebell).get(user, headers=headers).status_code == status


def test_a_token_from_the_password_grant_cannot_create_tokens(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    project = get_namespace(gatebell, "projects", make_project(gatebell, person))
    form = {"grant_type": "password", "username": person.username, "password": person.password}
    token = post_token(gatebell, form).json()["access_token"]
    refused = post(Api(gatebell, token), project)
    assert refused.status_code == 403
    assert "obtained with a password" in refused.json()["message"]


@pytest.mark.both_databases
def test_a_token_without_refresh_cannot_create_tokens_that_outlive_it(
    gatebell: LiveGatebell,
) -> None:
    person = make_user(gatebell)
    project = get_namespace(gatebell, "projects", make_project(gatebell, person))
    telly = make_application(gatebell, bob(gatebell), scopes="api", confidential=False)
    told = codes(gatebell, telly, scope="api")
    approve(open_browser(gatebell, person), gatebell, told["user_code"])
    answer = poll(gatebell, telly, told["device_code"]).json()
    assert "refresh_token" not in answer
    made = make_bot_token(Api(gatebell, answer["access_token"]), project, expires_at=day(30))
    with database_of(gatebell) as session:
        ends = session.scalars(
            select(PersonalAccessToken.expires_at).where(PersonalAccessToken.id == made.id)
        ).one()
        of_device = session.scalars(
            select(AccessToken.expires_at)
            .join(Application, Application.id == AccessToken.application_id)
            .where(Application.uid == telly.client_id)
        ).one()
    assert ends == of_device


@pytest.mark.long
def test_an_application_can_rotate_only_tokens_that_it_created(case: Case) -> None:
    mine = make_token(case.gatebell, case.person)
    own = Api(case.gatebell, mine.clear)
    of_project = make_bot_token(own, case.project)
    refused = case.application.send_token_request("POST", f"/{mine.id}/rotate")
    assert refused.status_code == 403
    assert "cannot rotate personal access tokens" in refused.json()["message"]
    path = f"{case.project.by_id}/{{}}/rotate"
    assert case.application.send_request("POST", path.format(of_project.id)).status_code == 403
    assert is_good(own)
    assert is_good(Api(case.gatebell, of_project.clear))
    made = make_bot_token(case.application, case.project)
    again = case.application.send_request("POST", path.format(made.id))
    assert again.status_code == 200
    rotated = Api(case.gatebell, again.json()["token"])
    assert is_good(rotated)
    revoke_on_the_page(case)
    assert not is_good(rotated)
