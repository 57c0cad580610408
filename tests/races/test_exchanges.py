"""Tests that no exchanged token survives a concurrent revocation of its authorization."""

import requests

from tests.support.accounts.people import ClientCredentials
from tests.support.oauth.oauth_wire import is_token_valid, new_pair
from tests.support.oauth.token_exchange import exchange_form, exchanging_application
from tests.support.service.crowd import send_simultaneously
from tests.support.service.live import LiveGatebell

PARALLEL = 12
ROUNDS = 3


def send_at_once(
    gatebell: LiveGatebell, client: ClientCredentials, token: str
) -> list[requests.Response]:
    """Exchange a token on many connections, and revoke it on one of them."""

    def exchange(session: requests.Session) -> requests.Response:
        return session.post(f"{gatebell.url}/oauth/token", data=exchange_form(client, token))

    def revoke(session: requests.Session) -> requests.Response:
        form = {"client_id": client.client_id, "client_secret": client.secret, "token": token}
        return session.post(f"{gatebell.url}/oauth/revoke", data=form)

    half = [exchange] * (PARALLEL // 2)
    return send_simultaneously(gatebell, [*half, revoke, *half[1:]])


def test_no_exchanged_token_survives_the_authorization(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    for _ in range(ROUNDS):
        answers = send_at_once(gatebell, client, new_pair(gatebell, client).access)
        assert {answer.status_code for answer in answers} <= {200, 400}
        issued = [each.json()["access_token"] for each in answers if "access_token" in each.text]
        assert [token for token in issued if is_token_valid(gatebell, token)] == []
