"""Applications that act on their own behalf, and their client assertions."""

import json
from datetime import timedelta
from typing import Any

import requests
from joserfc import jwt
from joserfc.jwk import ECKey, Key

from domain.core.randomness import generate_random_hex
from domain.oauth.clients.service_accounts import find_service_account
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    database_of,
    make_application,
    make_user,
    now,
)
from tests.support.oauth.oauth_wire import post_token
from tests.support.service.live import LiveGatebell

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"  # Not a secret.
ALL = "api read_api read_user read_alerts write_alerts openid"


def machine_application(
    gatebell: LiveGatebell, owner: Person | None = None, **changes: Any
) -> ClientCredentials:
    """Register an application that has a service account."""
    owner = owner or make_user(gatebell, name="developer")
    return make_application(gatebell, owner, **{"service_account": True, "scopes": ALL} | changes)


def account_of(gatebell: LiveGatebell, client: ClientCredentials) -> str:
    """Return the username of the service account of an application."""
    with database_of(gatebell) as session:
        found = find_service_account(client.id, session=session, today=now().date())
    assert found is not None
    return found.username


def request_machine_token(
    gatebell: LiveGatebell, client: ClientCredentials, **more: str
) -> requests.Response:
    """Request a token of the application itself."""
    form = {
        "grant_type": "client_credentials",
        "client_id": client.client_id,
        "client_secret": client.secret,
    }
    return post_token(gatebell, {**form, **more})


def machine_token(gatebell: LiveGatebell, client: ClientCredentials, **more: str) -> str:
    """Return an access token of the application itself."""
    answer = request_machine_token(gatebell, client, **more)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])


def public_part(key: Key) -> str:
    """Return the public JWK of a key, as users enter it."""
    return json.dumps(key.as_dict(private=False))


def new_key() -> Key:
    """Return a new key pair."""
    return ECKey.generate_key("P-256")


def assertion(
    gatebell: LiveGatebell,
    client: ClientCredentials,
    key: Key,
    *,
    algorithm: str = "ES256",
    header: dict[str, Any] | None = None,
    **claims: Any,
) -> str:
    """Return a client assertion.

    `claims` replace the valid ones; None removes a claim.
    """
    moment = now()
    good = {
        "iss": client.client_id,
        "sub": client.client_id,
        "aud": gatebell.url,
        "jti": generate_random_hex(16),
        "iat": int(moment.timestamp()),
        "exp": int((moment + timedelta(minutes=1)).timestamp()),
    }
    said = {name: value for name, value in {**good, **claims}.items() if value is not None}
    return jwt.encode({"alg": algorithm, **(header or {})}, said, key, algorithms=[algorithm])


def request_token_with_assertion(
    gatebell: LiveGatebell, text: str, **more: str
) -> requests.Response:
    """Request a token of the application itself, with an assertion and no secret."""
    form = {
        "grant_type": "client_credentials",
        "client_assertion_type": ASSERTION,
        "client_assertion": text,
    }
    return post_token(gatebell, {**form, **more})
