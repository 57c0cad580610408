"""Tests of the owner's settings for allowed groups and the lifetime of authorizations."""

from datetime import timedelta

import pytest
import requests
from sqlalchemy import update

from models import AccessToken, Application, Authorization
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    alice,
    bob,
    database_of,
    make_application,
    make_project,
    make_user,
    now,
    open_browser,
)
from tests.support.oauth.device_wire import codes, enter_code, poll, press_decision
from tests.support.oauth.oauth_wire import (
    assert_refused,
    new_pair,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    post_token,
    redeem,
    refresh,
    submit_decision,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")
PAGES = "/-/user_settings/applications"


@pytest.fixture
def group(gatebell: LiveGatebell) -> str:
    """The path of a group that Bob owns."""
    return make_project(gatebell, bob(gatebell)).rpartition("/")[0]


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    return make_application(gatebell, bob(gatebell))


def edit(
    gatebell: LiveGatebell, client: ClientCredentials, **values: str | None
) -> requests.Response:
    browser = open_browser(gatebell, bob(gatebell))
    page = browser.get(f"{gatebell.url}{PAGES}/{client.id}/edit")
    return submit(browser, page, form_with(page, "redirect_uris"), **values)


def add(gatebell: LiveGatebell, group: str, person: Person, role: int = 10) -> None:
    members = api_caller(gatebell, bob(gatebell), f"/groups/{group}/members")
    members.done("POST", json={"username": person.username, "access_level": role}, status=201)


def remove(gatebell: LiveGatebell, group: str, person: Person) -> None:
    members = api_caller(gatebell, bob(gatebell), f"/groups/{group}/members")
    mine = next(each for each in members.done("GET") if each["username"] == person.username)
    members.done("DELETE", f"/{mine['id']}", status=204)


@pytest.mark.long
@pytest.mark.both_databases
def test_only_members_of_allowed_groups_can_use_an_application(
    gatebell: LiveGatebell, client: ClientCredentials, group: str
) -> None:
    person = make_user(gatebell)
    browser = open_browser(gatebell, person)
    assert edit(gatebell, client, allowed_groups=group).status_code == 302
    refused = parse_redirect(open_authorization(browser, gatebell, client))
    assert refused["error"] == "access_denied"
    assert "groups" in refused["error_description"]
    add(gatebell, group, person)
    page = open_authorization(browser, gatebell, client)
    assert page.status_code == 200
    remove(gatebell, group, person)
    # The role was removed while the page was open.
    assert parse_redirect(submit_decision(browser, page))["error"] == "access_denied"
    assert edit(gatebell, client, allowed_groups="").status_code == 302
    assert "code" in parse_redirect(
        submit_decision(browser, open_authorization(browser, gatebell, client))
    )


@pytest.mark.long
@pytest.mark.both_databases
def test_a_user_who_leaves_the_group_loses_access_at_the_next_refresh(
    gatebell: LiveGatebell, client: ClientCredentials, group: str
) -> None:
    person = make_user(gatebell)
    add(gatebell, group, person)
    edit(gatebell, client, allowed_groups=group)
    browser = open_browser(gatebell, person)
    answer = submit_decision(browser, open_authorization(browser, gatebell, client))
    pair = parse_token_pair(redeem(gatebell, client, parse_redirect(answer)["code"]))
    pair = parse_token_pair(refresh(gatebell, client, pair.refresh))
    remove(gatebell, group, person)
    refused = refresh(gatebell, client, pair.refresh)
    assert_refused(refused, "invalid_grant")
    assert "groups" in refused.json()["error_description"]
    add(gatebell, group, person)
    assert refresh(gatebell, client, pair.refresh).status_code == 200


@pytest.mark.long
@pytest.mark.both_databases
def test_an_allowed_subgroup_includes_members_of_its_parent_but_not_the_reverse(
    gatebell: LiveGatebell, client: ClientCredentials, group: str
) -> None:
    groups = api_caller(gatebell, bob(gatebell), "/groups")
    parent = groups.done("GET", f"/{group}")["id"]
    groups.done("POST", json={"name": "sub", "path": "sub", "parent_id": parent}, status=201)
    above, below = make_user(gatebell), make_user(gatebell)
    add(gatebell, group, above)
    add(gatebell, f"{group}%2Fsub", below)
    edit(gatebell, client, allowed_groups=f"{group}/sub")
    assert open_authorization(open_browser(gatebell, above), gatebell, client).status_code == 200
    edit(gatebell, client, allowed_groups=group)
    assert open_authorization(open_browser(gatebell, below), gatebell, client).is_redirect


@pytest.mark.both_databases
def test_an_application_with_a_deleted_group_is_closed_to_all_users(
    gatebell: LiveGatebell, client: ClientCredentials, group: str
) -> None:
    edit(gatebell, client, allowed_groups=group)
    with database_of(gatebell) as session:
        mine = update(Application).where(Application.id == client.id)
        session.execute(mine.values(allowed_group_ids=[999_999]))
    assert parse_redirect(
        open_authorization(open_browser(gatebell, bob(gatebell)), gatebell, client)
    )["error"]
    page = open_browser(gatebell, bob(gatebell)).get(f"{gatebell.url}{PAGES}/{client.id}").text
    assert "The allowed groups were deleted" in page


def test_an_invisible_group_is_rejected_like_an_unknown_group(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    hidden = make_project(gatebell, alice(gatebell)).rpartition("/")[0]
    for path in (hidden, "nowhere"):
        answer = edit(gatebell, client, allowed_groups=path)
        assert answer.status_code == 422
        assert f"Group {path} not found, or you do not have access." in answer.text


@pytest.mark.both_databases
def test_device_requests_of_other_users_are_rejected(gatebell: LiveGatebell, group: str) -> None:
    client = make_application(gatebell, bob(gatebell), confidential=False)
    edit(gatebell, client, allowed_groups=group)
    browser = open_browser(gatebell, make_user(gatebell))
    asked = codes(gatebell, client, scope="read_user")
    answer = press_decision(browser, enter_code(browser, gatebell, asked["user_code"]), "approve")
    assert (answer.status_code, "groups" in answer.text) == (403, True)
    assert poll(gatebell, client, asked["device_code"]).json()["error"] == "authorization_pending"


@pytest.mark.long
@pytest.mark.both_databases
def test_password_requests_of_other_users_are_rejected(
    gatebell: LiveGatebell, client: ClientCredentials, group: str
) -> None:
    person = make_user(gatebell)
    edit(gatebell, client, allowed_groups=group)
    form = {
        "grant_type": "password",
        "username": person.username,
        "password": person.password,
        "client_id": client.client_id,
        "client_secret": client.secret,
        "scope": "read_user",
    }
    assert_refused(post_token(gatebell, form), "invalid_grant")
    add(gatebell, group, person)
    assert post_token(gatebell, form).status_code == 200


def age(gatebell: LiveGatebell, client: ClientCredentials, days: int) -> None:
    """Make tokens and consents of an application older."""
    with database_of(gatebell) as session:
        for table in (AccessToken, Authorization):
            created = now() - timedelta(days=days)
            mine = update(table).where(table.application_id == client.id)
            session.execute(mine.values(created_at=created))


@pytest.mark.both_databases
@pytest.mark.parametrize("field", ["refresh_idle_days", "refresh_longest_days"])
def test_refreshing_ends_after_the_configured_number_of_days(
    gatebell: LiveGatebell, field: str
) -> None:
    client = make_application(gatebell, bob(gatebell), trusted=True, **{field: 7})
    pair = new_pair(gatebell, client, scope="read_user")
    age(gatebell, client, 6)
    renewed = refresh(gatebell, client, pair.refresh)
    assert renewed.status_code == 200
    later = parse_token_pair(renewed)
    if field == "refresh_idle_days":
        assert refresh(gatebell, client, later.refresh).status_code == 200
        pair = new_pair(gatebell, client, scope="read_user")
        age(gatebell, client, 7)
        refused = refresh(gatebell, client, pair.refresh)
    else:
        with database_of(gatebell) as session:
            mine = update(Authorization).where(Authorization.application_id == client.id)
            session.execute(mine.values(created_at=now() - timedelta(days=7)))
        refused = refresh(gatebell, client, later.refresh)
    assert_refused(refused, "invalid_grant")
    assert "expired" in refused.json()["error_description"]


@pytest.mark.long
def test_the_owner_can_set_and_remove_the_numbers_of_days(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    edit(gatebell, client, refresh_idle_days="1", refresh_longest_days="30")
    browser = open_browser(gatebell, bob(gatebell))
    page = browser.get(f"{gatebell.url}{PAGES}/{client.id}").text
    assert "1 day after the last use, and 30 days after the authorization" in page
    edit(gatebell, client, refresh_idle_days="", refresh_longest_days="")
    assert "after the last use" not in browser.get(f"{gatebell.url}{PAGES}/{client.id}").text
    for wrong in ("0", "4000", "x"):
        assert edit(gatebell, client, refresh_idle_days=wrong).status_code == 422


@pytest.mark.parametrize(
    "url", ["ftp://x", "https://", "https://a.example/#x", "x" * 3000, "https://10.1.2.3/out"]
)
def test_an_invalid_logout_url_is_rejected(
    gatebell: LiveGatebell, client: ClientCredentials, url: str
) -> None:
    assert edit(gatebell, client, backchannel_logout_uri=url).status_code == 422
