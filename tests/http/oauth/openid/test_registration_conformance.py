"""The certification plan for dynamic registration, module by module.

Each test is named after a module of `oidcc-dynamic-certification-test-plan` and uses a client that
registers itself with a key. All clients use PKCE, which the suite does not: such clients need it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
import requests
from joserfc.jwk import Key

from tests.support.accounts.people import (
    CALLBACK,
    ClientCredentials,
    Person,
    make_user,
    open_browser,
)
from tests.support.oauth.conformance_wire import NONCE, Signed, complete_flow, supported, unsigned
from tests.support.oauth.machines import ASSERTION, assertion, new_key, public_part
from tests.support.oauth.oauth_wire import (
    PKCE,
    STATE,
    VERIFIER,
    Changes,
    assert_refused,
    assert_refused_on_a_page,
    machine,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    post_token,
    submit_decision,
)
from tests.support.oauth.openid_wire import list_key_ids, request_userinfo, verify_id_token
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

pytestmark = pytest.mark.one_database("postgres")


@pytest.fixture(scope="module")
def gatebell(live_postgres: LiveGatebell) -> Iterator[LiveGatebell]:
    """A provider with open client registration."""
    make_user(live_postgres, admin=True)  # Owner of the clients that no user owns.
    switches = {"dynamic_client_registration": "true", "open_client_registration": "true"}
    many = {"client_registration_rate_limit": "1000/minute"}
    with changed_settings(live_postgres, **switches, **many) as changed:
        yield changed


@pytest.fixture
def person(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell)


@pytest.fixture
def browser(gatebell: LiveGatebell, person: Person) -> requests.Session:
    """A browser with a signed-in user."""
    return open_browser(gatebell, person)


@dataclass(frozen=True)
class Client:
    """A client that has registered itself."""

    credentials: ClientCredentials
    key: Key
    #: Response to the registration.
    registered: dict[str, Any]

    def prove(self, gatebell: LiveGatebell, **claims: Any) -> dict[str, str]:
        """Return the parameters that authenticate the client."""
        text = assertion(gatebell, self.credentials, self.key, **claims)
        return {"client_assertion_type": ASSERTION, "client_assertion": text}

    def redeem(self, gatebell: LiveGatebell, _: ClientCredentials, code: str) -> requests.Response:
        """Redeem a code, with the URL of the endpoint as audience."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.credentials.redirect_uri,
            "code_verifier": VERIFIER,
        }
        proof = self.prove(gatebell, aud=f"{gatebell.url}/oauth/token")
        return post_token(gatebell, form | proof)


def metadata(key: Key, **said: object) -> dict[str, object]:
    """Return the metadata of a client of the plan."""
    return {
        "client_name": "Suite",
        "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "private_key_jwt",
        "jwks": {"keys": [json.loads(public_part(key))]},
        **said,
    }


def register(gatebell: LiveGatebell, body: Mapping[str, object]) -> requests.Response:
    return machine(gatebell).post(f"{gatebell.url}/oauth/register", json=body)


def new_client(gatebell: LiveGatebell, **said: object) -> Client:
    """Register a client with a key at the endpoint from the metadata."""
    key = new_key()
    body = metadata(key, **said)
    answer = machine(gatebell).post(supported(gatebell)["registration_endpoint"], json=body)
    assert answer.status_code == 201, answer.text
    registered = answer.json()
    credentials = ClientCredentials(
        id=0,
        client_id=registered["client_id"],
        secret="",
        redirect_uri=registered["redirect_uris"][0],
        scopes=registered["scope"],
    )
    return Client(credentials, key, registered)


def ask_for(
    gatebell: LiveGatebell, browser: requests.Session, client: Client, **changes: Changes
) -> requests.Response:
    """Request an authorization with the client's parameters."""
    wanted: dict[str, Changes] = {"scope": "openid", "nonce": NONCE, **PKCE, **changes}
    return open_authorization(browser, gatebell, client.credentials, **wanted)


def run(
    gatebell: LiveGatebell, browser: requests.Session, client: Client, **changes: Changes
) -> Signed:
    """Complete a flow with the user's consent."""
    answer = submit_decision(browser, ask_for(gatebell, browser, client, **changes))
    return complete_flow(gatebell, client.credentials, answer, client.redeem)


@pytest.mark.long
def test_oidcc_idtoken_rs256(gatebell: LiveGatebell, browser: requests.Session) -> None:
    client = new_client(gatebell, id_token_signed_response_alg="RS256")
    header = run(gatebell, browser, client).token.header
    assert header["alg"] == "RS256"
    assert header["kid"] in list_key_ids(gatebell)


@pytest.mark.long
@pytest.mark.not_offered
def test_oidcc_idtoken_unsigned(gatebell: LiveGatebell, browser: requests.Session) -> None:
    assert supported(gatebell)["id_token_signing_alg_values_supported"] == ["RS256"]
    client = new_client(gatebell, id_token_signed_response_alg="none")
    assert run(gatebell, browser, client).token.header["alg"] == "RS256"


@pytest.mark.long
@pytest.mark.not_offered
def test_oidcc_userinfo_rs256(gatebell: LiveGatebell, browser: requests.Session) -> None:
    assert "userinfo_signing_alg_values_supported" not in supported(gatebell)
    client = new_client(gatebell, userinfo_signed_response_alg="RS256")
    assert "userinfo_signed_response_alg" not in client.registered
    access = run(gatebell, browser, client).access
    assert request_userinfo(gatebell, access).headers["Content-Type"] == "application/json"


def test_oidcc_ensure_redirect_uri_in_authorization_request(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = new_client(gatebell, redirect_uris=[CALLBACK, f"{CALLBACK}/second"])
    assert_refused_on_a_page(ask_for(gatebell, browser, client, redirect_uri=None))


WITH_QUERY = f"{CALLBACK}?foo=bar"


def test_oidcc_redirect_uri_query_ok(gatebell: LiveGatebell, browser: requests.Session) -> None:
    client = new_client(gatebell, redirect_uris=[WITH_QUERY])
    answer = submit_decision(browser, ask_for(gatebell, browser, client))
    assert answer.headers["Location"].startswith(f"{WITH_QUERY}&")
    complete_flow(gatebell, client.credentials, answer, client.redeem)


@pytest.mark.rfc("oidc-core-3.1.2.1-d")
def test_oidcc_redirect_uri_query_mismatch(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = new_client(gatebell, redirect_uris=[WITH_QUERY])
    other = f"{CALLBACK}?bar=foo"
    assert_refused_on_a_page(ask_for(gatebell, browser, client, redirect_uri=other))


@pytest.mark.rfc("oidc-core-3.1.2.1-d")
def test_oidcc_redirect_uri_query_added(gatebell: LiveGatebell, browser: requests.Session) -> None:
    client = new_client(gatebell)
    assert_refused_on_a_page(ask_for(gatebell, browser, client, redirect_uri=WITH_QUERY))


@pytest.mark.rfc("rfc7591-3.2.2-a")
def test_oidcc_redirect_uri_regfrag(gatebell: LiveGatebell) -> None:
    answer = register(gatebell, metadata(new_key(), redirect_uris=[f"{CALLBACK}#fragment"]))
    assert_refused(answer, "invalid_redirect_uri")


@pytest.mark.not_offered
def test_oidcc_discovery_endpoint_verification(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    # For providers with registration, the suite also expects implicit grants.
    assert supported(gatebell)["response_types_supported"] == ["code"]
    client = new_client(gatebell)
    answer = ask_for(gatebell, browser, client, response_type="id_token")
    assert parse_redirect(answer)["error"] == "unsupported_response_type"


@pytest.mark.rfc("rfc7591-3-a")
def test_oidcc_server(gatebell: LiveGatebell, browser: requests.Session, person: Person) -> None:
    signed = run(gatebell, browser, new_client(gatebell), scope="openid profile email")
    assert signed.token.claims["nonce"] == NONCE
    assert signed.claims["preferred_username"] == person.username


@pytest.mark.not_offered
def test_oidcc_registration_logo_uri(gatebell: LiveGatebell, browser: requests.Session) -> None:
    logo = "https://client.example/logo.png"
    client = new_client(gatebell, logo_uri=logo)
    assert client.registered["logo_uri"] == logo
    assert logo not in ask_for(gatebell, browser, client).text


def test_oidcc_registration_policy_uri(gatebell: LiveGatebell, browser: requests.Session) -> None:
    client = new_client(gatebell, policy_uri="https://client.example/policy")
    page = ask_for(gatebell, browser, client).text
    assert 'Privacy policy (not verified): <a href="https://client.example/policy"' in page


def test_oidcc_registration_tos_uri(gatebell: LiveGatebell, browser: requests.Session) -> None:
    client = new_client(gatebell, tos_uri="https://client.example/terms")
    page = ask_for(gatebell, browser, client).text
    assert 'Terms of service (not verified): <a href="https://client.example/terms"' in page


def assert_keys_elsewhere_are_refused(gatebell: LiveGatebell) -> None:
    body = metadata(new_key(), jwks_uri="https://client.example/keys")
    answer = register(gatebell, {name: value for name, value in body.items() if name != "jwks"})
    assert_refused(answer, "invalid_client_metadata")
    assert "jwks_uri is not supported" in answer.json()["error_description"]


@pytest.mark.not_offered
def test_oidcc_registration_jwks_uri(gatebell: LiveGatebell) -> None:
    assert_keys_elsewhere_are_refused(gatebell)


@pytest.mark.not_offered
def test_oidcc_registration_sector_uri(gatebell: LiveGatebell, browser: requests.Session) -> None:
    assert supported(gatebell)["subject_types_supported"] == ["public"]
    sector = {"subject_type": "pairwise", "sector_identifier_uri": "https://client.example/uris"}
    client = new_client(gatebell, **sector)
    assert not sector.keys() & client.registered.keys()
    subjects = {
        run(gatebell, browser, each).claims["sub"] for each in (client, new_client(gatebell))
    }
    assert len(subjects) == 1


@pytest.mark.not_offered
def test_oidcc_registration_sector_bad(gatebell: LiveGatebell) -> None:
    said = {"sector_identifier_uri": "https://other.example/uris"}
    assert not said.keys() & new_client(gatebell, **said).registered.keys()


@pytest.mark.rfc("oidc-core-10.1.1-a")
def test_oidcc_server_rotate_keys(gatebell: LiveGatebell) -> None:
    before = list_key_ids(gatebell)
    new = gatebell.cli("keys", "rotate")["kid"]
    after = list_key_ids(gatebell)
    assert set(after) - set(before) == {new}
    assert set(before) & set(after)
    assert len(after) == len(set(after))


@pytest.mark.not_offered
def test_oidcc_refresh_token_rp_key_rotation(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    assert_keys_elsewhere_are_refused(gatebell)
    # Instead, a client replaces its old key with the new key (RFC 7592).
    client, key = new_client(gatebell), new_key()
    signed = run(gatebell, browser, client, scope="openid offline_access")
    body = {**metadata(key), "client_id": client.credentials.client_id}
    headers = {"Authorization": f"Bearer {client.registered['registration_access_token']}"}
    url = client.registered["registration_client_uri"]
    assert machine(gatebell).put(url, json=body, headers=headers).status_code == 200
    assert_refused(renew(gatebell, client, signed), "invalid_client", 401)
    assert renew(gatebell, replace(client, key=key), signed).status_code == 200


def renew(gatebell: LiveGatebell, client: Client, signed: Signed) -> requests.Response:
    """Send the refresh token of a flow."""
    form = {"grant_type": "refresh_token", "refresh_token": signed.refresh}
    return post_token(gatebell, form | client.prove(gatebell))


def assert_request_uri_is_refused(
    gatebell: LiveGatebell, browser: requests.Session, **said: object
) -> None:
    assert supported(gatebell)["request_uri_parameter_supported"] is False
    client = new_client(gatebell, **said)
    uri = "https://client.example/request"
    brought = parse_redirect(ask_for(gatebell, browser, client, request_uri=uri))
    assert (brought["error"], brought["state"]) == ("request_uri_not_supported", STATE)


@pytest.mark.not_offered
def test_oidcc_request_uri_unsigned(gatebell: LiveGatebell, browser: requests.Session) -> None:
    assert_request_uri_is_refused(gatebell, browser)


@pytest.mark.not_offered
def test_oidcc_request_uri_signed_rs256(gatebell: LiveGatebell, browser: requests.Session) -> None:
    assert_request_uri_is_refused(gatebell, browser, request_object_signing_alg="RS256")


@pytest.mark.long
def test_oidcc_ensure_request_object_with_redirect_uri(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = new_client(gatebell)
    inside = unsigned(gatebell, client.credentials, scope="openid", redirect_uri=CALLBACK)
    outside = f"{CALLBACK}/abc"
    page = ask_for(gatebell, browser, client, redirect_uri=outside, request=inside)
    assert_refused_on_a_page(page)


@pytest.mark.long
@pytest.mark.rfc("oidc-core-12-a", "oidc-core-12.2-a")
def test_oidcc_refresh_token(gatebell: LiveGatebell, browser: requests.Session) -> None:
    client = new_client(gatebell, grant_types=["authorization_code", "refresh_token"])
    signed = run(gatebell, browser, client, scope="openid offline_access", prompt="consent")
    new = parse_token_pair(renew(gatebell, client, signed))
    again = verify_id_token(gatebell, new.answer["id_token"]).claims
    for name in ("iss", "sub", "aud", "auth_time"):
        assert again[name] == signed.token.claims[name]
    assert_refused(renew(gatebell, new_client(gatebell), signed), "invalid_grant")


@pytest.mark.long
@pytest.mark.rfc("rfc7523-3-b")
def test_oidcc_ensure_client_assertion_with_iss_aud_succeeds(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = new_client(gatebell)
    code = parse_redirect(submit_decision(browser, ask_for(gatebell, browser, client)))["code"]
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
    }
    proof = client.prove(gatebell, aud=gatebell.url)
    assert parse_token_pair(post_token(gatebell, form | proof)).answer["id_token"]
