"""A TV and a script get access through third-party client libraries."""

from datetime import timedelta
from typing import Any

import pytest
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from oauthlib.oauth2 import DeviceClient, LegacyApplicationClient
from oauthlib.oauth2.rfc6749.errors import (
    AccessDeniedError,
    CustomOAuth2Error,
    InvalidGrantError,
)
from requests_oauthlib import OAuth2Session as OAuthlibSession
from sqlalchemy import update

from models import DeviceAuthorization
from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    now,
    signed_in,
)
from tests.support.oauth.device_wire import DEVICE_GRANT, enter_code, press_decision, television
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


def discovered(gatebell: LiveGatebell) -> dict[str, Any]:
    """Discover the endpoints as a client does."""
    address = f"{gatebell.url}/.well-known/oauth-authorization-server"
    document: dict[str, Any] = gatebell.http().get(address).json()
    return document


@pytest.mark.spec("B10", "C1", "C3", "C4", "C5", "C8", "G1")
@pytest.mark.rfc("rfc8628-3.5-a", "rfc8628-3.5-b")
def test_a_tv_polls_slows_down_and_gets_a_token(gatebell: LiveGatebell) -> None:
    endpoints = discovered(gatebell)
    client = television(gatebell)
    with AuthlibSession(client.client_id, token_endpoint_auth_method="none") as session:
        session.trust_env = False
        asked = {"client_id": client.client_id, "scope": "read_user"}
        device = session.post(
            endpoints["device_authorization_endpoint"], data=asked, withhold_token=True
        ).json()

        def fetch() -> dict[str, Any]:
            return dict(
                session.fetch_token(
                    endpoints["token_endpoint"],
                    grant_type=DEVICE_GRANT,
                    device_code=device["device_code"],
                )
            )

        for error in ("authorization_pending", "slow_down"):
            with pytest.raises(OAuthError) as refused:
                fetch()
            assert refused.value.error == error

        browser = signed_in(gatebell, alice(gatebell))
        browser.get(device["verification_uri_complete"])
        press_decision(browser, enter_code(browser, gatebell, device["user_code"]), "approve")

        token = fetch()
        assert token["token_type"] == "Bearer"
        assert token["scope"] == "read_user"
        user = session.get(f"{gatebell.url}/api/v4/user")
        assert user.json()["username"] == alice(gatebell).username


@pytest.mark.spec("B10", "C7", "C8")
@pytest.mark.rfc("rfc8628-3.5-c")
def test_approval_and_denial_with_requests_oauthlib(gatebell: LiveGatebell) -> None:
    endpoints = discovered(gatebell)
    client = television(gatebell)
    browser, http = signed_in(gatebell, alice(gatebell)), gatebell.http()
    for decision in ("approve", "deny"):
        with OAuthlibSession(client=DeviceClient(client.client_id)) as session:
            session.trust_env = False
            asked = {"client_id": client.client_id, "scope": "read_user"}
            device = http.post(endpoints["device_authorization_endpoint"], data=asked).json()
            for error in ("authorization_pending", "slow_down"):
                with pytest.raises(CustomOAuth2Error, match=error):
                    session.fetch_token(
                        endpoints["token_endpoint"],
                        device_code=device["device_code"],
                        include_client_id=True,
                    )
            page = enter_code(browser, gatebell, device["user_code"])
            press_decision(browser, page, decision)
            if decision == "approve":
                session.fetch_token(
                    endpoints["token_endpoint"],
                    device_code=device["device_code"],
                    include_client_id=True,
                )
                assert session.get(f"{gatebell.url}/api/v4/user").status_code == 200
            else:
                with pytest.raises(AccessDeniedError):
                    session.fetch_token(
                        endpoints["token_endpoint"],
                        device_code=device["device_code"],
                        include_client_id=True,
                    )


@pytest.mark.spec("B10", "C1", "C4", "C8")
@pytest.mark.rfc("rfc8628-3.5-e")
def test_a_program_that_respects_the_interval_never_gets_slow_down(gatebell: LiveGatebell) -> None:
    endpoints = discovered(gatebell)
    client = television(gatebell)
    browser = signed_in(gatebell, alice(gatebell))
    http = gatebell.http()
    asked = {"client_id": client.client_id, "scope": "read_user"}
    device = http.post(endpoints["device_authorization_endpoint"], data=asked).json()
    form = {
        "grant_type": DEVICE_GRANT,
        "client_id": client.client_id,
        "device_code": device["device_code"],
    }
    told = []
    while True:
        answer = http.post(endpoints["token_endpoint"], data=form).json()
        told.append(answer.get("error"))
        if "access_token" in answer:
            break
        if len(told) == 2:
            press_decision(browser, enter_code(browser, gatebell, device["user_code"]), "approve")
        let_pass(gatebell, client, device["interval"])
    assert told == ["authorization_pending", "authorization_pending", None]


def let_pass(gatebell: LiveGatebell, client: ClientCredentials, seconds: int) -> None:
    """Move the last polls of an application's devices into the past."""
    earlier = now() - timedelta(seconds=seconds)
    devices = update(DeviceAuthorization).where(DeviceAuthorization.application_id == client.id)
    with database_of(gatebell) as session:
        session.execute(devices.values(last_polled_at=earlier))


@pytest.mark.long
@pytest.mark.spec("B7", "G1", "M6")
def test_a_script_signs_in_with_a_password(gatebell: LiveGatebell) -> None:
    endpoints = discovered(gatebell)
    client = make_application(gatebell, bob(gatebell), scopes="api")
    person = alice(gatebell)
    with AuthlibSession(client.client_id, client.secret) as authlib:
        authlib.trust_env = False
        token = authlib.fetch_token(
            endpoints["token_endpoint"], username=person.username, password=person.password
        )
        assert set(token) - {"expires_at"} == {"access_token", "token_type", "expires_in"}
        assert authlib.get(f"{gatebell.url}/api/v4/user").json()["username"] == person.username
    with OAuthlibSession(client=LegacyApplicationClient(client.client_id)) as oauthlib:
        oauthlib.trust_env = False
        oauthlib.fetch_token(
            endpoints["token_endpoint"],
            username=person.username,
            password=person.password,
            client_secret=client.secret,
        )
        assert oauthlib.get(f"{gatebell.url}/api/v4/user").status_code == 200
        with pytest.raises(InvalidGrantError):
            oauthlib.fetch_token(
                endpoints["token_endpoint"],
                username=person.username,
                password="not hers",
                client_secret=client.secret,
            )
