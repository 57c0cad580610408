"""A client that only knows the issuer discovers the endpoints (RFC 8414)."""

import pytest

from tests.stories.third_parties import (
    KINDS,
    Addresses,
    AuthlibInPublic,
    AuthlibWithBasic,
    Browser,
    OAuthlibWithBasic,
    ThirdParty,
)
from tests.support.accounts.people import alice, bob, make_application, make_user
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


def discovered(gatebell: LiveGatebell) -> Addresses:
    """Read the endpoints from the document at the well-known URL."""
    address = f"{gatebell.url}/.well-known/oauth-authorization-server"
    document = gatebell.http().get(address).json()
    assert document["issuer"] == gatebell.url
    assert "S256" in document["code_challenge_methods_supported"]
    return Addresses(
        authorize=document["authorization_endpoint"],
        token=document["token_endpoint"],
        revoke=document["revocation_endpoint"],
        introspect=document["introspection_endpoint"],
        userinfo=document["userinfo_endpoint"],
    )


@pytest.mark.spec("A1", "A2")
@pytest.mark.rfc("rfc8414-2-d", "rfc8414-3-a")
@pytest.mark.parametrize("kind", [AuthlibInPublic, AuthlibWithBasic, OAuthlibWithBasic])
def test_a_client_that_only_knows_the_issuer_gets_a_token(
    gatebell: LiveGatebell, kind: type[ThirdParty]
) -> None:
    client = make_application(gatebell, bob(gatebell), **kind.registration)
    third_party = kind(client, discovered(gatebell))
    # Charlie has to sign in and to approve the application.
    browser = Browser(gatebell.http(), make_user(gatebell, name="charlie"))
    with third_party.session:
        third_party.take(browser.walk(third_party.authorization_url()))
        user = third_party.get(f"{gatebell.url}/api/v4/user").json()
    assert browser.seen == ["sign in", "consent"]
    assert user["username"] == browser.person.username


def test_a_user_who_approved_before_sees_no_consent_page(gatebell: LiveGatebell) -> None:
    client = make_application(gatebell, bob(gatebell))
    third_party = AuthlibWithBasic(client, discovered(gatebell))
    browser = Browser(gatebell.http(), alice(gatebell))
    with third_party.session:
        third_party.take(browser.walk(third_party.authorization_url()))
        third_party.take(browser.walk(third_party.authorization_url()))
        assert third_party.get(f"{gatebell.url}/api/v4/user").status_code == 200
    assert browser.seen == ["sign in", "consent"]


@pytest.mark.long
@pytest.mark.rfc("rfc6749-10.8-a")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_secrets_are_never_logged(gatebell: LiveGatebell, kind: type[ThirdParty]) -> None:
    client = make_application(gatebell, bob(gatebell), **kind.registration)
    third_party = kind(client, Addresses.written_down(gatebell))
    browser = Browser(gatebell.http(), make_user(gatebell, name="charlie"))
    with third_party.session:
        landed = browser.walk(third_party.authorization_url())
        third_party.take(landed)
        first = third_party.token
        third_party.refresh()
        second = third_party.token
        gatebell.http().get(
            f"{gatebell.url}/oauth/token/info?access_token={second['access_token']}"
        )
        gatebell.http().get(f"{gatebell.url}/api/v4/user?access_token={first['access_token']}")
        third_party.revoke()
    secrets = [
        client.secret,
        browser.person.password,
        landed.partition("code=")[2].partition("&")[0],
        *(pair[name] for pair in (first, second) for name in ("access_token", "refresh_token")),
        *browser.session.cookies.values(),
    ]
    log = gatebell.log_text()
    assert "/oauth/token" in log  # This confirms that it is the right log.
    for secret in secrets:
        assert len(secret) > 20
        assert secret not in log
