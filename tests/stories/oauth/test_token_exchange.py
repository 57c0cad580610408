"""A web application exchanges its token for a narrower one, through client libraries."""

import pytest
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from oauthlib.oauth2 import BackendApplicationClient
from requests_oauthlib import OAuth2Session as OAuthlibSession

from tests.support.accounts.people import alice
from tests.support.oauth.oauth_wire import new_pair
from tests.support.oauth.token_exchange import (
    ACCESS_TOKEN,
    TOKEN_EXCHANGE,
    exchanging_application,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


@pytest.mark.long
@pytest.mark.rfc("rfc8693-2.1-a", "rfc8693-2.2.1-a")
def test_a_worker_gets_a_token_that_only_reads_the_user(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    pair = new_pair(gatebell, client, scope="read_api read_user")
    with AuthlibSession(client.client_id, client.secret) as worker:
        worker.trust_env = False
        asked = {"subject_token": pair.access, "subject_token_type": ACCESS_TOKEN}
        url = f"{gatebell.url}/oauth/token"
        with pytest.raises(OAuthError, match="invalid_scope"):
            worker.fetch_token(url, grant_type=TOKEN_EXCHANGE, scope="api", **asked)
        token = worker.fetch_token(url, grant_type=TOKEN_EXCHANGE, scope="read_user", **asked)
        assert token["issued_token_type"] == ACCESS_TOKEN
        user = worker.get(f"{gatebell.url}/api/v4/user")
        assert user.json()["username"] == alice(gatebell).username
        assert worker.get(f"{gatebell.url}/api/v4/projects").status_code == 403


class ExchangeClient(BackendApplicationClient):
    """A client with a custom grant, defined as in the library's documentation."""

    grant_type = TOKEN_EXCHANGE


def test_a_token_is_exchanged_through_requests_oauthlib(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    pair = new_pair(gatebell, client, scope="read_api read_user")
    own = ExchangeClient(client.client_id, scope="read_user")
    with OAuthlibSession(client=own) as worker:
        worker.trust_env = False
        token = worker.fetch_token(
            f"{gatebell.url}/oauth/token",
            client_secret=client.secret,
            subject_token=pair.access,
            subject_token_type=ACCESS_TOKEN,
            scope="read_user",
        )
        assert token["scope"] == ["read_user"]
        assert worker.get(f"{gatebell.url}/api/v4/user").status_code == 200
