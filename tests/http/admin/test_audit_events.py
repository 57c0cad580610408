"""Tests of the contents and actors of audit events, and of the absence of secrets in them."""

import json
from dataclasses import asdict
from datetime import timedelta
from urllib.parse import urljoin

import pytest

from domain.access.roles import Role
from domain.audit.events import EventKind
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    bob,
    make_application,
    make_project,
    make_user,
    open_browser,
    unique,
)
from tests.support.accounts.team import give_role, person_for
from tests.support.database.audit_log import (
    count_events,
    get_event_about_user,
    list_events_about_user,
    list_events_with_subject,
)
from tests.support.oauth.device_wire import codes, enter_code, poll, press_decision, television
from tests.support.oauth.oauth_wire import (
    PKCE,
    age_refreshes,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    post_token,
    redeem,
    redeem_publicly,
    refresh,
    revoke,
    submit_decision,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, forms_in, submit

pytestmark = pytest.mark.one_database("sqlite")


@pytest.fixture
def carol(gatebell: LiveGatebell) -> Person:
    """A user without any other events."""
    return make_user(gatebell, name="carol")


@pytest.fixture
def board(gatebell: LiveGatebell) -> ClientCredentials:
    """An application that needs consent."""
    return make_application(gatebell, bob(gatebell), name="Deploy Board")


@pytest.mark.spec("K1")
def test_a_consent_is_recorded_with_its_scopes_and_origin(
    gatebell: LiveGatebell, carol: Person, board: ClientCredentials
) -> None:
    browser = open_browser(gatebell, carol)
    browser.headers["User-Agent"] = "Lynx/2.9"

    submit_decision(browser, open_authorization(browser, gatebell, board), "cancel")
    submit_decision(browser, open_authorization(browser, gatebell, board))

    refused = get_event_about_user(gatebell, carol, EventKind.CONSENT_REFUSED)
    given = get_event_about_user(gatebell, carol, EventKind.CONSENT_GIVEN)
    for event in (refused, given):
        assert event.subject == "Deploy Board"
        assert event.details == {"application_id": board.client_id, "scopes": "read_api read_user"}
        assert (event.actor_name, event.actor_id) == (carol.username, event.user_id)
        assert (event.address, event.user_agent) == ("127.0.0.1", "Lynx/2.9")
        assert event.request_id


@pytest.mark.spec("K1")
def test_a_decision_about_a_device_is_recorded_once(gatebell: LiveGatebell, carol: Person) -> None:
    browser, telly = open_browser(gatebell, carol), television(gatebell)
    page = enter_code(browser, gatebell, codes(gatebell, telly)["user_code"])
    for _ in range(2):
        press_decision(browser, page, "approve")
    press_decision(
        browser, enter_code(browser, gatebell, codes(gatebell, telly)["user_code"]), "deny"
    )

    approved = get_event_about_user(gatebell, carol, EventKind.DEVICE_APPROVED)
    denied = get_event_about_user(gatebell, carol, EventKind.DEVICE_DENIED)
    assert {approved.subject, denied.subject} == {"Telly & Co"}
    assert approved.details["scopes"] == "read_user"
    assert approved.details["device_address"] == "127.0.0.1"


@pytest.mark.spec("K1")
def test_the_end_of_an_applications_access_is_recorded(
    gatebell: LiveGatebell, carol: Person, board: ClientCredentials
) -> None:
    browser = open_browser(gatebell, carol)
    parse_token_pair(
        redeem(
            gatebell,
            board,
            parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, board)))[
                "code"
            ],
        )
    )
    page = browser.get(f"{gatebell.url}/-/user_settings/authorized_applications")
    submit(browser, page, form_to(page, "/revoke"))
    assert (
        get_event_about_user(gatebell, carol, EventKind.CONSENT_REVOKED).subject == "Deploy Board"
    )


@pytest.mark.spec("K1")
def test_a_reused_or_stolen_code_is_recorded_although_the_request_fails(
    gatebell: LiveGatebell, carol: Person, board: ClientCredentials
) -> None:
    browser = open_browser(gatebell, carol)
    code = parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, board)))[
        "code"
    ]
    redeem(gatebell, board, code)
    assert list_events_about_user(gatebell, carol, EventKind.CODE_REUSED) == ()

    assert redeem(gatebell, board, code).status_code == 400
    reused = get_event_about_user(gatebell, carol, EventKind.CODE_REUSED)
    # The actor is unknown, since it may have been a thief.
    assert (reused.subject, reused.actor_name) == ("Deploy Board", "")

    thief = make_application(gatebell, bob(gatebell), name="Thief")
    stolen = parse_redirect(open_authorization(browser, gatebell, board))["code"]
    assert redeem(gatebell, thief, stolen).status_code == 400
    assert get_event_about_user(gatebell, carol, EventKind.CODE_INVALIDATED).subject == "Thief"


@pytest.mark.spec("K1", "B9")
def test_a_reused_refresh_token_is_recorded(gatebell: LiveGatebell, carol: Person) -> None:
    phone = make_application(gatebell, bob(gatebell), name="Phone", confidential=False)
    browser = open_browser(gatebell, carol)
    code = parse_redirect(
        submit_decision(browser, open_authorization(browser, gatebell, phone, **PKCE))
    )["code"]
    pair = parse_token_pair(redeem_publicly(gatebell, phone, code))
    assert refresh(gatebell, phone, pair.refresh, client_secret=None).status_code == 200
    assert refresh(gatebell, phone, pair.refresh, client_secret=None).status_code == 200
    assert list_events_about_user(gatebell, carol, EventKind.REFRESH_REUSED) == ()

    age_refreshes(gatebell, timedelta(minutes=1))
    answer = refresh(gatebell, phone, pair.refresh, client_secret=None)

    assert answer.json()["error"] == "invalid_grant"
    event = get_event_about_user(gatebell, carol, EventKind.REFRESH_REUSED)
    assert event.subject == "Phone"
    assert event.details["application_id"] == phone.client_id


@pytest.mark.spec("K1")
def test_ordinary_code_exchanges_and_refreshes_are_not_recorded(
    gatebell: LiveGatebell, carol: Person, board: ClientCredentials
) -> None:
    browser = open_browser(gatebell, carol)
    code = parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, board)))[
        "code"
    ]
    before = count_events(gatebell)
    pair = parse_token_pair(redeem(gatebell, board, code))
    for _ in range(3):
        pair = parse_token_pair(refresh(gatebell, board, pair.refresh))
    # A code without a consent page is not recorded, either: the earlier consent is the event.
    parse_redirect(open_authorization(browser, gatebell, board))
    assert count_events(gatebell) == before


@pytest.mark.spec("K1")
def test_a_token_from_the_password_grant_and_its_end_are_recorded(
    gatebell: LiveGatebell, carol: Person, board: ClientCredentials
) -> None:
    form = {"grant_type": "password", "username": carol.username, "password": carol.password}
    alone = post_token(gatebell, form).json()
    with_client = post_token(
        gatebell,
        {
            **form,
            "client_id": board.client_id,
            "client_secret": board.secret,
            "scope": "read_user",
        },
    ).json()

    issued = list_events_about_user(gatebell, carol, EventKind.TOKEN_ISSUED)
    assert [event.subject for event in issued] == ["Deploy Board", "password grant"]
    assert {event.actor_name for event in issued} == {carol.username}
    assert {event.details["grant_type"] for event in issued} == {"password"}

    revoke(gatebell, board, with_client["access_token"])
    # There is nothing left to revoke the second time.
    revoke(gatebell, board, with_client["access_token"])
    revoke(gatebell, board, alone["access_token"], client_id=None, client_secret=None)
    ended = list_events_about_user(gatebell, carol, EventKind.TOKEN_REVOKED)
    assert [event.subject for event in ended] == ["password grant", "Deploy Board"]
    assert {event.actor_description for event in ended} == {"the application"}


@pytest.mark.spec("K1")
@pytest.mark.parametrize("namespace", ["group", "project"])
def test_added_and_removed_members_are_recorded(
    gatebell: LiveGatebell, carol: Person, namespace: str
) -> None:
    owner = make_user(gatebell, name="owner")
    path = make_project(gatebell, owner)
    group = path.partition("/")[0]
    browser = open_browser(gatebell, owner)
    pages = {
        "group": (group, f"/groups/{group}/-/members"),
        "project": (path, f"/{path}/-/settings/members"),
    }
    subject, address = pages[namespace]
    page = browser.get(gatebell.url + address)
    form = form_with(page, "user")
    # A rejected change is not an event.
    assert submit(browser, page, form, user="nobody", role="30").status_code == 422
    submit(browser, page, form, user=carol.username, role="30")
    added = get_event_about_user(gatebell, carol, EventKind.MEMBER_ADDED)
    assert (added.subject, added.actor_name) == (subject, owner.username)
    assert added.details == {"username": carol.username, "role": "Developer"}

    page = browser.get(gatebell.url + address)
    # Owners come first in the list.
    carols = [form for form in forms_in(page.text) if form.action.endswith("/remove")][-1]
    submit(browser, page, carols)
    assert get_event_about_user(gatebell, carol, EventKind.MEMBER_REMOVED).subject == subject


@pytest.mark.spec("K1")
def test_changes_of_an_integration_are_recorded(gatebell: LiveGatebell) -> None:
    path, name = make_project(gatebell, bob(gatebell)), unique("Nagios")
    maintainer = person_for(gatebell, Role.MAINTAINER)
    give_role(gatebell, path, maintainer, Role.MAINTAINER)
    browser = open_browser(gatebell, maintainer)
    address = f"{gatebell.url}/{path}/-/settings/integrations"
    page = browser.get(f"{address}/new")
    made = submit(browser, page, form_with(page, "name"), name=name, type="http", active="y")

    (created,) = list_events_with_subject(gatebell, name)
    assert created.kind == EventKind.INTEGRATION_CHANGED
    assert created.actor_name == maintainer.username
    assert created.details == {
        "change": "created",
        "project": path,
        "type": "http",
        "active": True,
    }

    page = browser.get(urljoin(f"{gatebell.url}{made.headers['Location']}", "delete"))
    assert submit(browser, page, form_to(page, "/delete")).status_code == 302
    deleted = list_events_with_subject(gatebell, name)[0]
    assert (deleted.actor_name, deleted.details["change"]) == (maintainer.username, "deleted")


@pytest.mark.long
@pytest.mark.spec("K1")
def test_changes_by_operators_on_the_command_line_are_recorded(gatebell: LiveGatebell) -> None:
    name = unique("dave")
    gatebell.cli("users", "create", name, "--email", f"{name}@a.example", "--admin")
    gatebell.cli("settings", "set", "page_size", "33")
    gatebell.cli("settings", "set", "page_size", "20")
    made = gatebell.cli("tokens", "create", name, "--name", name, "--scopes", "api")

    issued, created = list_events_with_subject(gatebell, name)
    assert (created.kind, issued.kind) == (EventKind.USER_CREATED, EventKind.TOKEN_ISSUED)
    assert created.details == {"administrator": True, "by": "command"}
    changed = list_events_with_subject(gatebell, "page_size")[:2]
    assert [event.details["new"] for event in changed] == [20, 33]
    for event in (issued, created, *changed):
        assert (event.actor_id, event.actor_name, event.details["by"]) == (None, "", "command")
    assert made["token"] not in json.dumps(issued.details)


@pytest.mark.long
@pytest.mark.spec("K1")
def test_events_contain_no_secrets(
    gatebell: LiveGatebell, carol: Person, board: ClientCredentials
) -> None:
    browser, telly = open_browser(gatebell, carol), television(gatebell)
    code = parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, board)))[
        "code"
    ]
    pair = parse_token_pair(redeem(gatebell, board, code))
    redeem(gatebell, board, code)
    newer = refresh(gatebell, board, pair.refresh).json()
    refresh(gatebell, board, pair.refresh)
    device = codes(gatebell, telly)
    press_decision(browser, enter_code(browser, gatebell, device["user_code"]), "approve")
    polled = poll(gatebell, telly, device["device_code"]).json()
    form = {"grant_type": "password", "username": carol.username, "password": carol.password}
    alone = post_token(gatebell, form).json()

    events = list_events_about_user(gatebell, carol)
    assert len(events) >= 4
    written = json.dumps([asdict(event) for event in events], default=str)
    secrets = {
        *(carol.password, board.secret, code, pair.access, pair.refresh),
        *(device["device_code"], device["user_code"]),
        *(answer[name] for answer in (newer, polled, alone) for name in answer if "token" in name),
        *browser.cookies.get_dict().values(),
    } - {"bearer", "Bearer"}
    assert [secret for secret in secrets if secret in written] == []
    assert not any(f"gb{letter}-" in written for letter in "arsp")
