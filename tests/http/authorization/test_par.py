"""Tests of pushed authorization requests (RFC 9126), from `POST /oauth/par` to the code."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlencode

import pytest
from flask import Flask
from sqlalchemy import func, select, update

from models import Application, PushedRequest
from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    now,
    open_browser,
    signed_in,
)
from tests.support.database.stored import change
from tests.support.oauth.oauth_wire import (
    PKCE,
    STATE,
    Changes,
    assert_refused,
    assert_refused_on_a_page,
    authorization_url,
    machine,
    open_and_follow,
    parse_redirect,
    parse_token_pair,
    phone_application,
    redeem,
    redeem_publicly,
    server_application,
    sign_in_on,
    submit_decision,
)
from tests.support.oauth.proofs import Prover, redeem_with_key
from tests.support.oauth.pushes import PREFIX, address, push, pushed, request_form
from tests.support.service.live import LiveGatebell
from tests.support.service.message_receiver import running_receiver
from tests.support.wire.html_forms import form_with, forms_in, submit
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("postgres")


def only(client: ClientCredentials) -> Any:
    return PushedRequest.application_id == client.id


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    """An application that needs consent."""
    return make_application(gatebell, bob(gatebell), name="Pusher")


@pytest.mark.rfc("rfc9126-2.2-a", "rfc9126-2.2-b", "rfc9126-2.2-c")
def test_the_response_is_an_unpredictable_reference(gatebell: LiveGatebell) -> None:
    answer = push(gatebell, server_application(gatebell))
    assert answer.status_code == 201
    assert answer.headers["Content-Type"] == "application/json"
    assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
    body = answer.json()
    assert set(body) == {"request_uri", "expires_in"}
    assert body["expires_in"] == 90
    assert len(body["request_uri"].removeprefix(PREFIX)) == 53
    again = push(gatebell, server_application(gatebell)).json()
    assert again["request_uri"] != body["request_uri"]


@pytest.mark.advisory("CVE-2024-4540")
@pytest.mark.both_databases
@pytest.mark.rfc("rfc9126-4-a", "rfc9126-2.1-a", "rfc9126-2.1-b")
def test_the_browser_sends_the_reference_and_returns_with_a_code(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    server, phone = server_application(gatebell), phone_application(gatebell)
    back = parse_redirect(open_and_follow(browser, pushed(gatebell, server)))
    assert (back["state"], back["iss"]) == (STATE, gatebell.url)
    assert STATE not in unquote(" ".join(browser.cookies.values()))
    assert redeem(gatebell, server, back["code"]).ok
    url = pushed(gatebell, phone, client_secret=None, **PKCE)
    assert redeem_publicly(
        gatebell, phone, parse_redirect(open_and_follow(browser, url))["code"]
    ).ok


@pytest.mark.rfc("rfc9126-2-a")
def test_a_client_can_identify_itself_only_by_basic_authentication(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    form = request_form(client, client_id=None, client_secret=None)
    auth = (client.client_id, client.secret)
    answer = machine(gatebell).post(f"{gatebell.url}/oauth/par", data=form, auth=auth)
    assert answer.status_code == 201, answer.text
    url = address(gatebell, client, answer.json()["request_uri"])
    assert "code" in parse_redirect(open_and_follow(signed_in(gatebell, alice(gatebell)), url))


@pytest.mark.rfc("rfc9126-2-a", "rfc9126-2.3-a")
@pytest.mark.parametrize(
    "changes", [{"client_secret": None}, {"client_secret": "gbs-wrong"}, {"client_id": "nobody"}]
)
def test_a_client_that_fails_to_authenticate_is_rejected(
    gatebell: LiveGatebell, changes: dict[str, Changes]
) -> None:
    answer = push(gatebell, server_application(gatebell), **changes)
    assert_refused(answer, "invalid_client", 401)


@pytest.mark.rfc("rfc9126-2.1-c", "rfc9126-2.1-d", "rfc9126-2.3-a")
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"request_uri": f"{PREFIX}x"}, "invalid_request"),
        ({"request_uri": "https://client.example/request.jwt"}, "invalid_request"),
        ({"request": "e30.e30."}, "request_not_supported"),
        ({"redirect_uri": "https://evil.example/"}, "invalid_request"),
        ({"redirect_uri": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"scope": "nonsense"}, "invalid_scope"),
        ({"scope": "api"}, "invalid_scope"),
        ({"code_challenge": "x"}, "invalid_request"),
        ({"prompt": "none login"}, "invalid_request"),
        ({"max_age": "soon"}, "invalid_request"),
        ({"dpop_jkt": "x"}, "invalid_request"),
        ({"state": ["a", "b"]}, "invalid_request"),
        ({"client_id": ["a", "b"]}, "invalid_request"),
        ({"nonce": "a\x00b"}, "invalid_request"),
    ],
)
def test_an_invalid_authorization_request_cannot_be_pushed(
    gatebell: LiveGatebell, changes: dict[str, Changes], error: str
) -> None:
    assert_refused(push(gatebell, server_application(gatebell), **changes), error)


def test_a_public_client_needs_pkce_to_push_a_request(gatebell: LiveGatebell) -> None:
    answer = push(gatebell, phone_application(gatebell), client_secret=None)
    assert_refused(answer, "invalid_request")


@pytest.mark.rfc("rfc9126-2.3-c")
def test_pushed_requests_have_a_maximum_size(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    answer = push(gatebell, client, state="x" * 40_000)
    assert (answer.status_code, answer.json()["error"]) == (413, "invalid_request")
    assert push(gatebell, client, state="x" * 10_000).status_code == 201
    unanswerable = push(gatebell, client, state="x" * 20_000)
    assert_refused(unanswerable, "invalid_request")
    assert "state is too long" in unanswerable.json()["error_description"]


@pytest.mark.rfc("rfc9126-2.3-d")
def test_too_many_pushed_requests_are_rejected(
    make_app: Callable[[Settings], Flask], settings: Settings
) -> None:
    visitor = make_app(replace(settings, oauth_rate_limit="1/minute")).test_client()
    first, second = (visitor.post("/oauth/par") for _ in range(2))
    assert (first.status_code, second.status_code) == (401, 429)
    assert second.get_json()["error"] == "temporarily_unavailable"
    assert int(second.headers["Retry-After"]) > 0


@pytest.mark.both_databases
@pytest.mark.rfc("rfc9126-4-b")
def test_only_parameters_of_authorization_requests_are_stored(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pushed(gatebell, client, password="a secret", colour="green", code_verifier="x", **PKCE)
    with database_of(gatebell) as session:
        kept = session.scalars(select(PushedRequest.parameters).where(only(client))).one()
    assert set(kept) == {
        *("client_id", "code_challenge", "code_challenge_method", "redirect_uri", "response_type"),
        *("scope", "state"),
    }


@pytest.mark.both_databases
@pytest.mark.rfc("rfc9126-4-c")
def test_the_page_can_be_reloaded_until_the_decision(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = open_browser(gatebell, alice(gatebell))
    url = pushed(gatebell, client)
    first, page = open_and_follow(browser, url), open_and_follow(browser, url)
    assert "code" in parse_redirect(submit_decision(browser, page))
    for again in (submit_decision(browser, first), open_and_follow(browser, url)):
        assert_refused_on_a_page(again)
        assert "invalid_request_uri" in again.text


@pytest.mark.long
def test_a_cancellation_also_uses_up_the_request(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = open_browser(gatebell, alice(gatebell))
    url = pushed(gatebell, client)
    page = open_and_follow(browser, url)
    back = parse_redirect(submit_decision(browser, page, "cancel"))
    assert (back["error"], back["state"]) == ("access_denied", STATE)
    assert_refused_on_a_page(open_and_follow(browser, url))


@pytest.mark.both_databases
def test_a_request_without_a_consent_page_works_once(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    url = pushed(gatebell, server_application(gatebell))
    assert "code" in parse_redirect(open_and_follow(browser, url))
    assert_refused_on_a_page(open_and_follow(browser, url))


def test_the_sign_in_page_names_the_application_and_leads_to_the_consent_page(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = gatebell.http()
    page = open_and_follow(browser, pushed(gatebell, client, login_hint="somebody"))
    assert "Pusher" in page.text
    assert form_with(page, "password").value("login") == "somebody"
    question = sign_in_on(browser, page, alice(gatebell))
    assert "code" in parse_redirect(submit_decision(browser, question))


def test_prompt_none_shows_no_page(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    url = pushed(gatebell, client, prompt="none")
    # Before the sign-in, users are not redirected to applications of other users.
    assert "login_required" in open_and_follow(gatebell.http(), url).text
    silent = parse_redirect(open_and_follow(signed_in(gatebell, alice(gatebell)), url))
    assert (silent["error"], silent["state"]) == ("consent_required", STATE)


@pytest.mark.both_databases
@pytest.mark.rfc("rfc9126-2.2-d", "rfc9126-4-d")
def test_only_the_client_that_pushed_a_request_can_use_it(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    uri = push(gatebell, client).json()["request_uri"]
    other = server_application(gatebell)
    assert_refused_on_a_page(open_and_follow(browser, address(gatebell, other, uri)))
    nobody = f"{gatebell.url}/oauth/authorize?{urlencode({'request_uri': uri})}"
    assert_refused_on_a_page(open_and_follow(browser, nobody))
    assert 'name="decision"' in open_and_follow(browser, address(gatebell, client, uri)).text


@pytest.mark.advisory("CVE-2020-10770")
def test_references_to_other_urls_are_not_fetched(gatebell: LiveGatebell) -> None:
    browser, client = signed_in(gatebell, alice(gatebell)), server_application(gatebell)
    with running_receiver() as receiver:
        for parameter in ("request_uri", "request"):
            url = authorization_url(gatebell, client, **{parameter: receiver.url})
            answer = browser.get(url, allow_redirects=False)
            assert "code=" not in answer.headers.get("Location", "")
        assert receiver.received == []


@pytest.mark.rfc("rfc9126-4-e")
@pytest.mark.parametrize("uri", ["", "x", "gbq-" + "0" * 49, "\x00", "é", "a" * 2000])
def test_an_unknown_reference_is_rejected_on_a_page(gatebell: LiveGatebell, uri: str) -> None:
    client = server_application(gatebell)
    url = address(gatebell, client, PREFIX + uri, redirect_uri=client.redirect_uri)
    answer = open_and_follow(signed_in(gatebell, alice(gatebell)), url)
    assert_refused_on_a_page(answer)
    assert "invalid_request_uri" in answer.text


@pytest.mark.both_databases
@pytest.mark.rfc("rfc9126-4-e", "rfc9126-2.2-c")
def test_an_expired_reference_is_rejected_on_a_page(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser, url = signed_in(gatebell, alice(gatebell)), pushed(gatebell, client)
    change(gatebell, update(PushedRequest).where(only(client)).values(expires_at=now()))
    assert_refused_on_a_page(open_and_follow(browser, url))


@pytest.mark.both_databases
def test_an_opened_request_stays_valid_for_an_hour(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser, url = signed_in(gatebell, alice(gatebell)), pushed(gatebell, client)
    page = open_and_follow(browser, url)
    with database_of(gatebell) as session:
        row = session.scalars(select(PushedRequest).where(only(client))).one()
        assert row.expires_at == row.created_at + timedelta(hours=1)
        row.expires_at = now() + timedelta(seconds=20)
    assert 'name="decision"' in open_and_follow(browser, url).text
    change(gatebell, update(PushedRequest).where(only(client)).values(expires_at=now()))
    assert_refused_on_a_page(submit_decision(browser, page))


@pytest.mark.rfc("rfc9126-4-f")
def test_additional_parameters_in_the_url_are_ignored(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = open_browser(gatebell, alice(gatebell))
    uri = push(gatebell, client, scope="read_user").json()["request_uri"]
    more = {"scope": "api", "state": "another", "redirect_uri": "https://evil.example/"}
    page = open_and_follow(browser, address(gatebell, client, uri, **more, response_type="token"))
    assert "Full access" not in page.text
    answer = submit_decision(browser, page)
    assert answer.headers["Location"].startswith(client.redirect_uri + "?code=")
    assert parse_redirect(answer)["state"] == STATE
    issued = parse_token_pair(redeem(gatebell, client, parse_redirect(answer)["code"]))
    assert issued.answer["scope"] == "read_user"


@pytest.mark.parametrize("extra", ["request=e30.e30.", "client_id=x", f"request_uri={PREFIX}x"])
def test_a_reference_with_another_request_is_rejected_on_a_page(
    gatebell: LiveGatebell, client: ClientCredentials, extra: str
) -> None:
    url = f"{pushed(gatebell, client)}&{extra}"
    assert_refused_on_a_page(open_and_follow(signed_in(gatebell, alice(gatebell)), url))


def test_changes_of_the_application_since_the_push_count(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    url = pushed(gatebell, client)
    row = Application.uid == client.client_id
    change(gatebell, update(Application).where(row).values(redirect_uris=["https://new.example/"]))
    assert_refused_on_a_page(open_and_follow(signed_in(gatebell, alice(gatebell)), url))


def test_another_user_can_sign_in_from_the_consent_page(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = open_browser(gatebell, alice(gatebell))
    page = open_and_follow(browser, pushed(gatebell, client))
    form = next(each for each in forms_in(page.text) if "sign_out?next=" in each.action)
    answer = submit(browser, page, form)
    sign_in_page = browser.get(gatebell.url + answer.headers["Location"], allow_redirects=False)
    question = sign_in_on(browser, sign_in_page, bob(gatebell))
    assert 'name="decision"' in question.text


@pytest.mark.rfc("rfc9449-10.1-a", "rfc9449-10.1-b")
def test_a_proof_binds_the_request_and_its_code_to_the_key(gatebell: LiveGatebell) -> None:
    phone, key = phone_application(gatebell), Prover()
    endpoint = f"{gatebell.url}/oauth/par"
    form = request_form(phone, client_secret=None, **PKCE)
    headers = {"DPoP": key.proof("POST", endpoint)}
    answer = machine(gatebell).post(endpoint, data=form, headers=headers)
    assert answer.status_code == 201, answer.text
    replayed = machine(gatebell).post(endpoint, data=form, headers=headers)
    assert_refused(replayed, "invalid_dpop_proof")
    url = address(gatebell, phone, answer.json()["request_uri"])
    code = parse_redirect(open_and_follow(signed_in(gatebell, alice(gatebell)), url))["code"]
    assert_refused(redeem_publicly(gatebell, phone, code), "invalid_grant")
    assert_refused(redeem_with_key(gatebell, phone, code, Prover()), "invalid_grant")
    assert redeem_with_key(gatebell, phone, code, key).ok


@pytest.mark.rfc("rfc9449-10.1-c")
def test_a_proof_with_another_key_than_dpop_jkt_is_rejected(gatebell: LiveGatebell) -> None:
    phone, key, endpoint = phone_application(gatebell), Prover(), f"{gatebell.url}/oauth/par"
    for named, status in ((key.thumbprint, 201), (Prover().thumbprint, 400)):
        form = request_form(phone, client_secret=None, dpop_jkt=named, **PKCE)
        headers = {"DPoP": key.proof("POST", endpoint)}
        assert machine(gatebell).post(endpoint, data=form, headers=headers).status_code == status


@pytest.mark.rfc("rfc9126-5-a", "rfc9126-5-b")
def test_the_metadata_contains_the_endpoint_for_pushed_requests(gatebell: LiveGatebell) -> None:
    for name in ("oauth-authorization-server", "openid-configuration"):
        document = machine(gatebell).get(f"{gatebell.url}/.well-known/{name}").json()
        assert document["pushed_authorization_request_endpoint"] == f"{gatebell.url}/oauth/par"
        assert document["require_pushed_authorization_requests"] is False


@pytest.mark.both_databases
def test_used_requests_are_deleted(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    browser = open_browser(gatebell, alice(gatebell))
    assert "code" in parse_redirect(
        submit_decision(browser, open_and_follow(browser, pushed(gatebell, client)))
    )
    with database_of(gatebell) as session:
        assert session.scalar(select(func.count()).where(only(client))) == 0
