"""A service acts on its own behalf through client libraries, with a secret and with a key."""

import json

import pytest
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from joserfc.jwk import RSAKey
from oauthlib.oauth2 import BackendApplicationClient
from requests_oauthlib import OAuth2Session as OAuthlibSession

from tests.stories.javascript import RefusedError, install, running_application
from tests.support.accounts.people import ClientCredentials
from tests.support.oauth.machines import (
    account_of,
    machine_application,
    new_key,
    public_part,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


@pytest.mark.long
def test_a_service_works_through_authlib_with_its_secret_and_with_its_key(
    gatebell: LiveGatebell,
) -> None:
    key = RSAKey.generate_key(2048)
    client = machine_application(gatebell, jwks=public_part(key))
    name, url = account_of(gatebell, client), f"{gatebell.url}/oauth/token"
    with AuthlibSession(client.client_id, client.secret, scope="read_user") as service:
        service.trust_env = False
        service.fetch_token(url, grant_type="client_credentials")
        user = service.get(f"{gatebell.url}/api/v4/user").json()
        assert user["username"] == name
    with AuthlibSession(
        client.client_id,
        key.as_pem(private=True).decode(),
        token_endpoint_auth_method="private_key_jwt",  # Not a secret.
        scope="read_user",
    ) as service:
        service.trust_env = False
        service.register_client_auth_method(PrivateKeyJWT(url))
        service.fetch_token(url, grant_type="client_credentials")
        user = service.get(f"{gatebell.url}/api/v4/user").json()
        assert user["username"] == name


def test_a_service_works_through_requests_oauthlib(gatebell: LiveGatebell) -> None:
    client = machine_application(gatebell)
    own = BackendApplicationClient(client.client_id, scope="read_user")
    with OAuthlibSession(client=own) as service:
        service.trust_env = False
        service.fetch_token(f"{gatebell.url}/oauth/token", client_secret=client.secret)
        user = service.get(f"{gatebell.url}/api/v4/user").json()
        assert user["username"] == account_of(gatebell, client)


@pytest.mark.long
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "private_key_jwt"])
def test_a_service_works_through_openid_client(gatebell: LiveGatebell, method: str) -> None:
    install()
    key = new_key()
    client = machine_application(gatebell, jwks=public_part(key))
    if method == "private_key_jwt":
        private = json.dumps({**key.as_dict(private=True), "kid": key.thumbprint()})
        client = ClientCredentials(**{**vars(client), "secret": private})
    with running_application(gatebell, client, method=method, algorithm="oauth2") as program:
        token = program.do("work", scope="read_user")
        assert "refresh_token" not in token
        user = program.do("call", address=f"{gatebell.url}/api/v4/user")
        assert user["username"] == account_of(gatebell, client)
        assert program.do("introspect")["active"] is True
        with pytest.raises(RefusedError) as refusal:
            program.do("work", scope="openid")
        assert refusal.value.cause == "invalid_scope"
        program.do("revoke")
        assert program.do("introspect") == {"active": False}
