"""OpenID Connect requests, for tests of single responses."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import requests
from joserfc import jwt
from joserfc.jwk import KeySet

from tests.support.accounts.people import CALLBACK, ClientCredentials, bob, make_application
from tests.support.oauth.oauth_wire import Changes, machine, new_pair
from tests.support.service.live import LiveGatebell

SCOPES = "openid profile email"


@cache
def openid_application(gatebell: LiveGatebell) -> ClientCredentials:
    """Return a trusted application that signs users in; tests do not change it."""
    return make_application(
        gatebell,
        bob(gatebell),
        name="Sign-in App",
        trusted=True,
        scopes=f"read_user {SCOPES}",
        redirect_uris=(CALLBACK, "https://client.example/signed-out?a=b"),
    )


def request_key_set(
    gatebell: LiveGatebell, path: str = "/oauth/discovery/keys"
) -> requests.Response:
    """Request the key set."""
    return machine(gatebell).get(gatebell.url + path)


def list_key_ids(gatebell: LiveGatebell) -> list[str]:
    """Return the ids of the published keys."""
    return [key["kid"] for key in request_key_set(gatebell).json()["keys"]]


@dataclass(frozen=True)
class IdToken:
    """An ID token whose signature was checked with the published keys."""

    text: str
    header: dict[str, Any]
    claims: dict[str, Any]


def verify_id_token(gatebell: LiveGatebell, text: str) -> IdToken:
    """Check an ID token as an application does that only knows the key set."""
    keys = KeySet.import_key_set(request_key_set(gatebell).json())
    token = jwt.decode(text, keys, algorithms=["RS256"])
    return IdToken(text, token.header, token.claims)


def sign_in_to_application(
    gatebell: LiveGatebell, client: ClientCredentials | None = None, **changes: Changes
) -> IdToken:
    """Let Alice sign in to an application; return the ID token."""
    wanted: dict[str, Changes] = {"scope": "openid", **changes}
    pair = new_pair(gatebell, client or openid_application(gatebell), **wanted)
    return verify_id_token(gatebell, pair.answer["id_token"])


def request_userinfo(gatebell: LiveGatebell, token: str) -> requests.Response:
    """Request the claims of the signed-in user."""
    return machine(gatebell).get(
        f"{gatebell.url}/oauth/userinfo", headers={"Authorization": f"Bearer {token}"}
    )
