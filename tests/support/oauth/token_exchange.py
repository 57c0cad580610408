"""Token exchange (RFC 8693) request by request."""

from functools import cache
from typing import Any

import requests

from models import Application
from tests.support.accounts.people import ClientCredentials, bob, database_of, make_application
from tests.support.oauth.oauth_wire import Changes, changed, post_token
from tests.support.service.live import LiveGatebell

TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # Not a secret.
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # Not a secret.


@cache
def exchanging_application(gatebell: LiveGatebell) -> ClientCredentials:
    """Return an application that is allowed to exchange tokens."""
    client = make_application(
        gatebell, bob(gatebell), name="Workshop", trusted=True, scopes="api read_api read_user"
    )
    allow_exchange(gatebell, client)
    return client


def allow_exchange(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    """Allow an application to exchange tokens."""
    with database_of(gatebell) as session:
        session.get_one(Application, client.id).allowed_grants = TOKEN_EXCHANGE


def exchange_form(client: ClientCredentials, token: str) -> dict[str, str]:
    """Return the parameters of an exchange."""
    return {
        "grant_type": TOKEN_EXCHANGE,
        "client_id": client.client_id,
        "client_secret": client.secret,
        "subject_token": token,
        "subject_token_type": ACCESS_TOKEN,
    }


def exchange_token(
    gatebell: LiveGatebell,
    client: ClientCredentials,
    token: str,
    /,
    *,
    headers: Any = None,
    **changes: Changes,
) -> requests.Response:
    """Exchange an access token."""
    return post_token(gatebell, changed(exchange_form(client, token), changes), headers=headers)
