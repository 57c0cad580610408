"""Tokens are exchanged while their authorization is revoked: none of them survives."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import requests

from tests.support.accounts.people import ClientCredentials
from tests.support.oauth.oauth_wire import is_live, new_pair
from tests.support.oauth.token_exchange import exchange_form, exchanging_application
from tests.support.service.live import LiveGatebell

PARALLEL = 12
ROUNDS = 3


def send_at_once(
    gatebell: LiveGatebell, client: ClientCredentials, token: str
) -> list[requests.Response]:
    """Exchange a token from many connections; one of them revokes it instead."""
    barrier = Barrier(PARALLEL)

    def send(number: int) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            session.get(f"{gatebell.url}/healthz")
            barrier.wait(timeout=60)
            if number == PARALLEL // 2:
                form = {"client_id": client.client_id, "client_secret": client.secret}
                return session.post(f"{gatebell.url}/oauth/revoke", data={**form, "token": token})
            form = exchange_form(client, token)
            return session.post(f"{gatebell.url}/oauth/token", data=form)

    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(send, range(PARALLEL)))


def test_no_exchanged_token_survives_the_authorization(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    for _ in range(ROUNDS):
        answers = send_at_once(gatebell, client, new_pair(gatebell, client).access)
        assert {answer.status_code for answer in answers} <= {200, 400}
        issued = [each.json()["access_token"] for each in answers if "access_token" in each.text]
        assert [token for token in issued if is_live(gatebell, token)] == []
