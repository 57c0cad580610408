"""Tests of sixteen concurrent uses of a code or a refresh token: one succeeds, and none fails."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import timedelta
from time import sleep
from typing import Any

import pytest
import requests
from flask import Flask
from sqlalchemy import func, select

from domain.oauth.protocol import ProtocolRequest
from domain.oauth.server import AuthorizationServer
from models import AccessToken, Application
from tests.support.accounts.people import ClientCredentials, database_of, settings_of
from tests.support.oauth.oauth_wire import (
    PKCE,
    VERIFIER,
    age_refreshes,
    changed,
    is_token_valid,
    new_code,
    new_pair,
    new_public_pair,
    parse_token_pair,
    phone_application,
    refresh,
    server_application,
)
from tests.support.service.crowd import send_simultaneously
from tests.support.service.live import LiveGatebell
from web.extensions import db
from web.oauth import build_oauth_context
from web.services import get_services
from web.settings.environment import Settings

PARALLEL = 16
ROUNDS = 2


def all_at_once(gatebell: LiveGatebell, form: list[tuple[str, str]]) -> list[requests.Response]:
    """Send one token request from all clients, each on a connection that is already open."""
    url = f"{gatebell.url}/oauth/token"
    return send_simultaneously(gatebell, [lambda session: session.post(url, data=form)] * PARALLEL)


def assert_one_winner(answers: list[requests.Response]) -> None:
    statuses = Counter(answer.status_code for answer in answers)
    assert statuses == {200: 1, 400: PARALLEL - 1}, [answer.text for answer in answers]
    losers = [answer.json() for answer in answers if answer.status_code == 400]
    assert {loser["error"] for loser in losers} == {"invalid_grant"}


def tokens_of(gatebell: LiveGatebell, client: ClientCredentials) -> int:
    """Count all token pairs that were stored for an application."""
    statement = select(func.count(AccessToken.id)).join(
        Application, Application.id == AccessToken.application_id
    )
    with database_of(gatebell) as session:
        found = session.scalar(statement.where(Application.uid == client.client_id))
    return found or 0


def code_form(client: ClientCredentials, code: str) -> dict[str, str]:
    return {
        "grant_type": "authorization_code",
        "client_id": client.client_id,
        "code": code,
        "redirect_uri": client.redirect_uri,
        "code_verifier": VERIFIER,
    }


def refresh_form(client: ClientCredentials, token: str) -> dict[str, str]:
    return {
        "grant_type": "refresh_token",
        "client_id": client.client_id,
        "refresh_token": token,
    }


def redemption_of_a_server(gatebell: LiveGatebell) -> tuple[ClientCredentials, dict[str, str]]:
    client = server_application(gatebell)
    form = code_form(client, new_code(gatebell, client, **PKCE))
    return client, {**form, "client_secret": client.secret}


def redemption_of_a_phone(gatebell: LiveGatebell) -> tuple[ClientCredentials, dict[str, str]]:
    client = phone_application(gatebell)
    return client, code_form(client, new_code(gatebell, client, **PKCE))


def refresh_of_a_server(gatebell: LiveGatebell) -> tuple[ClientCredentials, dict[str, str]]:
    client = server_application(gatebell)
    form = refresh_form(client, new_pair(gatebell, client).refresh)
    return client, {**form, "client_secret": client.secret}


def refresh_of_a_phone(gatebell: LiveGatebell) -> tuple[ClientCredentials, dict[str, str]]:
    client = phone_application(gatebell)
    return client, refresh_form(client, new_public_pair(gatebell, client).refresh)


@pytest.mark.spec("B5", "B12")
@pytest.mark.rfc("rfc6749-4.1.2-c", "rfc6749-6-d", "rfc9700-4.2.4-b")
@pytest.mark.parametrize("prepare", [redemption_of_a_server, redemption_of_a_phone])
def test_exactly_one_of_sixteen_concurrent_requests_succeeds(
    gatebell: LiveGatebell,
    prepare: Callable[[LiveGatebell], tuple[ClientCredentials, dict[str, str]]],
) -> None:
    for _ in range(ROUNDS):
        client, form = prepare(gatebell)
        before = tokens_of(gatebell, client)
        assert_one_winner(all_at_once(gatebell, changed(form, {})))
        assert tokens_of(gatebell, client) == before + 1


@pytest.mark.long
@pytest.mark.advisory("CVE-2026-1035")
@pytest.mark.spec("B5")
@pytest.mark.rfc("rfc6749-6-d")
@pytest.mark.parametrize("prepare", [refresh_of_a_server, refresh_of_a_phone])
def test_sixteen_concurrent_refreshes_get_the_same_pair(
    gatebell: LiveGatebell,
    prepare: Callable[[LiveGatebell], tuple[ClientCredentials, dict[str, str]]],
) -> None:
    for _ in range(ROUNDS):
        client, form = prepare(gatebell)
        before = tokens_of(gatebell, client)
        pairs = [parse_token_pair(answer) for answer in all_at_once(gatebell, changed(form, {}))]
        assert len({(pair.access, pair.refresh) for pair in pairs}) == 1
        assert is_token_valid(gatebell, pairs[0].access)
        assert tokens_of(gatebell, client) == before + 1


@pytest.mark.long
@pytest.mark.advisory("CVE-2026-1035")
def test_without_a_replay_window_exactly_one_of_sixteen_refreshes_succeeds(
    gatebell: LiveGatebell,
) -> None:
    gatebell.cli("settings", "set", "refresh_replay_seconds", "0")
    sleep(1.2)
    try:
        for prepare in (refresh_of_a_server, refresh_of_a_phone):
            client, form = prepare(gatebell)
            before = tokens_of(gatebell, client)
            assert_one_winner(all_at_once(gatebell, changed(form, {})))
            assert tokens_of(gatebell, client) == before + 1
    finally:
        gatebell.cli("settings", "reset", "refresh_replay_seconds")
        sleep(1.2)


@pytest.mark.long
@pytest.mark.spec("B5")
def test_a_pair_that_is_being_stored_is_revoked_with_its_family(
    gatebell: LiveGatebell, make_app: Callable[[Settings], Flask]
) -> None:
    phone = phone_application(gatebell)
    first = new_public_pair(gatebell, phone)
    second = refresh(gatebell, phone, first.refresh, client_secret=None).json()
    age_refreshes(gatebell, timedelta(minutes=1))
    form = {name: [text] for name, text in refresh_form(phone, first.refresh).items()}
    before = tokens_of(gatebell, phone)
    with make_app(settings_of(gatebell)).app_context(), ThreadPoolExecutor(1) as pool:
        # An attacker presents the revoked token, which revokes the family except for the commit …
        server = AuthorizationServer(build_oauth_context())
        answer = server.create_token_response(ProtocolRequest("POST", form, {}))
        # … when the legitimate client refreshes.
        honest = pool.submit(refresh, gatebell, phone, second["refresh_token"], client_secret=None)
        sleep(0.5)
        assert not honest.done()
        db.session.commit()
        assert honest.result().json()["error"] == "invalid_grant"
    assert answer.status == 400
    assert not is_token_valid(gatebell, second["access_token"])
    assert tokens_of(gatebell, phone) == before


@pytest.mark.one_database("postgres")  # SQLite has one writer at a time
@pytest.mark.spec("B5")
def test_a_pair_that_is_stored_first_is_revoked_with_its_family(
    gatebell: LiveGatebell, make_app: Callable[[Settings], Flask]
) -> None:
    phone = phone_application(gatebell)
    first = new_public_pair(gatebell, phone)
    second = refresh(gatebell, phone, first.refresh, client_secret=None).json()
    age_refreshes(gatebell, timedelta(minutes=1))
    form = refresh_form(phone, second["refresh_token"])
    asked = ProtocolRequest("POST", {name: [text] for name, text in form.items()}, {})
    with make_app(settings_of(gatebell)).app_context(), ThreadPoolExecutor(1) as pool:

        def refresh_first() -> tuple[Any, Future[requests.Response]]:
            answer = AuthorizationServer(build_oauth_context()).create_token_response(asked)
            thief = pool.submit(refresh, gatebell, phone, first.refresh, client_secret=None)
            # The thread waits, because the new pair is not visible before the commit.
            assert not wait([thief], timeout=1).done
            return answer, thief

        honest, thief = get_services().connections.run_transaction(refresh_first)
        assert thief.result().json()["error"] == "invalid_grant"
    assert honest.status == 200
    assert not is_token_valid(gatebell, honest.body["access_token"])
