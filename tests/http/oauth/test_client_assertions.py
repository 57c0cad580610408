"""Client authentication with a key instead of a secret (RFC 7523, private_key_jwt)."""

import json
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc.jwk import ECKey, Key, OctKey, RSAKey

from domain.core.randomness import generate_random_hex
from tests.support.accounts.people import ClientCredentials, alice, make_application, now
from tests.support.oauth.machines import (
    ASSERTION,
    assertion,
    machine_application,
    new_key,
    public_part,
    request_machine_token,
    request_token_with_assertion,
)
from tests.support.oauth.oauth_wire import assert_refused, new_code, post_token
from tests.support.oauth.proofs import ABSENT, Prover
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


@pytest.fixture
def key() -> Key:
    return new_key()


@pytest.fixture
def client(gatebell: LiveGatebell, key: Key) -> ClientCredentials:
    return machine_application(gatebell, jwks=public_part(key))


def assert_invalid_client(answer: Any, words: str) -> None:
    assert_refused(answer, "invalid_client", 401)
    assert words in answer.json()["error_description"]


@pytest.mark.rfc("rfc9700-2.5-b")
@pytest.mark.both_databases
@pytest.mark.rfc("rfc7523-2.2-a", "rfc7523-3-a", "rfc7523-3-f")
def test_a_signed_assertion_replaces_the_secret(
    gatebell: LiveGatebell, client: ClientCredentials, key: Key
) -> None:
    answer = request_token_with_assertion(gatebell, assertion(gatebell, client, key))
    assert answer.status_code == 200, answer.text
    named = request_token_with_assertion(
        gatebell, assertion(gatebell, client, key), client_id=client.client_id
    )
    assert named.status_code == 200, named.text
    assert request_machine_token(gatebell, client).status_code == 200


@pytest.mark.parametrize(
    ("made", "algorithm"),
    [
        (lambda: RSAKey.generate_key(2048), "RS256"),
        (lambda: RSAKey.generate_key(2048), "PS256"),
        (lambda: ECKey.generate_key("P-384"), "ES384"),
    ],
)
def test_rsa_and_ec_keys_in_pem_are_accepted(
    gatebell: LiveGatebell, made: Any, algorithm: str
) -> None:
    key = made()
    pem = key.public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    client = machine_application(gatebell, jwks=pem)
    text = assertion(gatebell, client, key, algorithm=algorithm)
    assert request_token_with_assertion(gatebell, text).status_code == 200


@pytest.mark.both_databases
def test_a_key_is_changed_without_downtime(gatebell: LiveGatebell) -> None:
    old, new = new_key(), new_key()
    named = ({"kid": "a", **old.as_dict(private=False)}, {"kid": "b", **new.as_dict(private=False)})
    both = {"keys": named}
    client = machine_application(gatebell, jwks=json.dumps(both))
    for key, kid in ((old, "a"), (new, "b")):
        assert (
            request_token_with_assertion(gatebell, assertion(gatebell, client, key)).status_code
            == 200
        )
        text = assertion(gatebell, client, key, header={"kid": kid})
        assert request_token_with_assertion(gatebell, text).status_code == 200
    wrong = assertion(gatebell, client, old, header={"kid": "b"})
    assert_invalid_client(
        request_token_with_assertion(gatebell, wrong), "Client authentication failed"
    )


@pytest.mark.both_databases
def test_a_code_is_redeemed_with_an_assertion(gatebell: LiveGatebell, key: Key) -> None:
    client = make_application(gatebell, alice(gatebell), jwks=public_part(key))
    form = {
        "grant_type": "authorization_code",
        "code": new_code(gatebell, client),
        "redirect_uri": client.redirect_uri,
        "client_assertion_type": ASSERTION,
        "client_assertion": assertion(gatebell, client, key, aud=f"{gatebell.url}/oauth/token"),
    }
    assert post_token(gatebell, form).status_code == 200


@pytest.mark.advisory("CVE-2020-5300", "CVE-2020-15222", "CVE-2026-62995")
@pytest.mark.both_databases
@pytest.mark.rfc("rfc7523-3-e")
def test_an_assertion_cannot_be_reused(
    gatebell: LiveGatebell, client: ClientCredentials, key: Key
) -> None:
    text = assertion(gatebell, client, key)
    assert request_token_with_assertion(gatebell, text).status_code == 200
    assert_invalid_client(request_token_with_assertion(gatebell, text), "already been used")
    # Padding does not make it another assertion.
    assert_refused(request_token_with_assertion(gatebell, f"{text}=="), "invalid_client", 401)


_HOUR = 3600
WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"iss": "somebody"}, "iss and sub"),
    ({"sub": "somebody"}, "iss and sub"),
    ({"iss": None}, "iss and sub"),
    ({"aud": "https://other.example"}, "aud of"),
    ({"aud": None}, "aud of"),
    ({"aud": []}, "aud of"),
    ({"aud": 5}, "aud of"),
    ({"jti": None}, "jti"),
    ({"jti": "x" * 513}, "jti"),
    ({"jti": 5}, "jti"),
    ({"exp": None}, "exp of"),
    ({"exp": "soon"}, "exp of"),
    ({"exp": True}, "exp of"),
    ({"exp": float("nan")}, "exp of"),
    ({"exp": float("inf")}, "exp of"),
    ({"exp": 10**400}, "exp of"),
    ({"exp": -_HOUR}, "exp of"),
    ({"exp": 2 * _HOUR}, "exp of"),
    ({"iat": _HOUR}, "iat of"),
    ({"nbf": _HOUR}, "nbf of"),
    ({"nbf": "x"}, "nbf of"),
)


@pytest.mark.rfc("rfc7523-3-a", "rfc7523-3-b", "rfc7523-3-c", "rfc7523-3-d", "rfc7523-3.2-a")
@pytest.mark.parametrize(("claims", "words"), WRONG)
def test_an_invalid_claim_is_rejected_by_name(
    gatebell: LiveGatebell, client: ClientCredentials, key: Key, claims: dict[str, Any], words: str
) -> None:
    moment = int(now().timestamp())
    said = {
        name: moment + value if type(value) is int and abs(value) <= 2 * _HOUR else value
        for name, value in claims.items()
        if name in {"exp", "iat", "nbf"}
    }
    text = assertion(gatebell, client, key, **{**claims, **said})
    more = {"client_id": client.client_id}
    assert_invalid_client(request_token_with_assertion(gatebell, text, **more), words)


@pytest.mark.advisory("CVE-2025-59420", "CVE-2025-61920", "CVE-2026-75509")
def test_a_malformed_assertion_is_rejected(
    gatebell: LiveGatebell, client: ClientCredentials, key: Key
) -> None:
    for claims, header in (
        ({}, {}),
        ({"iss": [client.client_id]}, {}),
        ({"sub": [client.client_id]}, {}),
        ({}, {"crit": ["exp"], "exp": 1}),
        ({}, {"crit": ["unknown"], "unknown": True}),
        ({"much": "x" * 20_000}, {}),
    ):
        moment = int(now().timestamp())
        good = {"iss": client.client_id, "sub": client.client_id, "aud": gatebell.url}
        lifetime = {"jti": generate_random_hex(16), "iat": moment, "exp": moment + 60}
        text = Prover(key).signed({**good, **lifetime, **claims}, {"jwk": ABSENT, **header})
        answer = request_token_with_assertion(gatebell, text)
        if claims or header:
            assert_refused(answer, "invalid_client", 401)
        else:
            assert answer.status_code == 200, answer.text


@pytest.mark.advisory("CVE-2026-114618")
def test_an_assertion_for_two_servers_is_refused(
    gatebell: LiveGatebell, client: ClientCredentials, key: Key
) -> None:
    text = assertion(gatebell, client, key, aud=[gatebell.url, "https://other.example"])
    assert_invalid_client(request_token_with_assertion(gatebell, text), "aud of")


@pytest.mark.rfc("rfc7523-3-f", "rfc7523-3.2-a")
def test_an_assertion_of_another_client_is_rejected(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    other = machine_application(gatebell, jwks=public_part(new_key()))
    without = machine_application(gatebell)
    for text in (
        assertion(gatebell, client, new_key()),
        assertion(gatebell, other, new_key()),
        assertion(gatebell, without, new_key()),
        assertion(gatebell, client, OctKey.import_key(client.secret * 2), algorithm="HS256"),
        f"{assertion(gatebell, client, new_key())}x",
        "x",
        "x.y.z",
        "eyJhbGciOiJub25lIn0." + assertion(gatebell, client, new_key()).split(".")[1] + ".",
    ):
        answer = request_token_with_assertion(gatebell, text)
        assert_refused(answer, "invalid_client", 401)
    asked = request_token_with_assertion(gatebell, "x.y.z", client_id=client.client_id)
    assert_invalid_client(asked, "Client authentication failed")


def test_an_assertion_with_a_secret_or_another_type_is_rejected(
    gatebell: LiveGatebell, client: ClientCredentials, key: Key
) -> None:
    text = assertion(gatebell, client, key)
    both = request_token_with_assertion(gatebell, text, client_secret=client.secret)
    assert_refused(both, "invalid_request")
    other = request_token_with_assertion(gatebell, text, client_assertion_type="urn:x")
    assert_refused(other, "invalid_request")
    assert request_token_with_assertion(gatebell, text).status_code == 200


def test_an_assertion_may_begin_up_to_a_minute_later(
    gatebell: LiveGatebell, client: ClientCredentials, key: Key
) -> None:
    soon = int((now() + timedelta(seconds=30)).timestamp())
    text = assertion(gatebell, client, key, iat=soon, nbf=soon)
    assert request_token_with_assertion(gatebell, text).status_code == 200
