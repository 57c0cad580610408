"""A service with short lifetimes and strict rules, configured as an operator does."""

from collections.abc import Iterator
from datetime import timedelta
from time import sleep

import pytest
from sqlalchemy import select

from models import Authorization
from tests.stories.third_parties import Addresses, AuthlibWithBasic, Browser
from tests.support.accounts.people import (
    alice,
    bob,
    database_of,
    make_application,
    make_user,
    sign_in,
    signed_in,
)
from tests.support.oauth.oauth_wire import (
    assert_refused,
    is_token_valid,
    new_code,
    new_pair,
    open_authorization,
    parse_redirect,
    redeem,
    refresh,
    server_application,
    submit_decision,
)
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import form_with, submit


@pytest.fixture(scope="module")
def hasty(new_service: NewService) -> Iterator[LiveGatebell]:
    """A service for this file only, so that its settings affect no other tests."""
    brief = {"AUTHORIZATION_CODE_LIFETIME_SECONDS": "60", "SESSION_LIFETIME_SECONDS": "600"}
    with running(new_service(only="app", **brief)) as made:
        yield made


@pytest.mark.spec("B12")
@pytest.mark.rfc("rfc6749-4.1.2-b")
def test_a_code_expires_after_its_lifetime(hasty: LiveGatebell) -> None:
    client = server_application(hasty)
    assert redeem(hasty, client, new_code(hasty, client)).status_code == 200
    late = new_code(hasty, client)
    with database_of(hasty) as session:
        granted = session.scalars(select(Authorization).order_by(Authorization.id.desc())).first()
        assert granted is not None
        assert granted.code_expires_at == granted.created_at + timedelta(seconds=60)
        # Move the expiry back as if a minute had passed.
        granted.code_expires_at -= timedelta(seconds=60)
    assert_refused(redeem(hasty, client, late), "invalid_grant")


@pytest.mark.long
@pytest.mark.spec("B4", "B6")
def test_a_changed_access_token_lifetime_applies_without_a_restart(
    hasty: LiveGatebell,
) -> None:
    changed = hasty.cli("settings", "set", "access_token_lifetime_seconds", "1")
    assert changed == {"name": "ACCESS_TOKEN_LIFETIME_SECONDS", "value": 1}
    sleep(1.1)  # Every process uses the setting within a second.
    client = server_application(hasty)
    pair = new_pair(hasty, client)
    assert pair.answer["expires_in"] == 1
    sleep(1.1)
    assert not is_token_valid(hasty, pair.access)
    assert refresh(hasty, client, pair.refresh).status_code == 200
    hasty.cli("settings", "set", "access_token_lifetime_seconds", "7200")


@pytest.mark.long
@pytest.mark.spec("B6")
def test_a_client_library_refreshes_an_expired_token(hasty: LiveGatebell) -> None:
    hasty.cli("settings", "set", "access_token_lifetime_seconds", "1")
    sleep(1.1)
    client = make_application(hasty, bob(hasty))
    third_party = AuthlibWithBasic(client, Addresses.written_down(hasty))
    browser = Browser(signed_in(hasty, alice(hasty)), alice(hasty))
    with third_party.session:
        third_party.take(browser.walk(third_party.authorization_url()))
        sleep(1.1)
        hasty.cli("settings", "set", "access_token_lifetime_seconds", "7200")
        sleep(1.1)
        third_party.refresh()
        assert third_party.get(f"{hasty.url}/api/v4/user").status_code == 200


@pytest.mark.long
@pytest.mark.spec("A8")
@pytest.mark.rfc("rfc9700-2.6-c")
def test_an_instance_can_require_https_redirect_uris(hasty: LiveGatebell) -> None:
    hasty.cli("settings", "set", "require_https_redirect_uris", "true")
    sleep(1.1)
    browser = signed_in(hasty, bob(hasty))
    page = browser.get(f"{hasty.url}/-/user_settings/applications/new")
    form = form_with(page, "redirect_uris")
    fields: dict[str, str | list[str] | None] = {"name": "Board", "scopes": ["read_user"]}
    plain = submit(browser, page, form, redirect_uris="http://client.example/cb", **fields)
    assert plain.status_code == 422
    assert "must start with https://" in plain.text
    local = submit(browser, page, form, redirect_uris="http://127.0.0.1/cb", **fields)
    assert local.status_code == 302


@pytest.mark.long
def test_an_application_created_on_the_command_line_works(hasty: LiveGatebell) -> None:
    owner = make_user(hasty, name="bob")
    made = hasty.cli(
        "applications",
        "create",
        "Board",
        *("--owner", owner.username),
        *("--redirect-uri", "https://client.example/callback"),
        *("--scopes", "read_user"),
    )
    like = make_application(hasty, owner, scopes="read_user")
    client = type(like)(
        id=made["id"],
        client_id=made["application_id"],
        secret=made["secret"],
        redirect_uri=like.redirect_uri,
        scopes=like.scopes,
    )
    browser = sign_in(hasty, alice(hasty))
    code = parse_redirect(submit_decision(browser, open_authorization(browser, hasty, client)))[
        "code"
    ]
    assert redeem(hasty, client, code).status_code == 200
