"""Validation of DPoP proofs (RFC 9449 section 4.3)."""

from functools import cache
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OctKey, RSAKey
from joserfc.jws import JWSRegistry

from domain.core.randomness import generate_random_hex
from tests.support.accounts.people import now
from tests.support.oauth.oauth_wire import assert_refused, phone_application, post_token
from tests.support.oauth.proofs import ABSENT, Prover, encoded
from tests.support.service.certificates import rsa_key
from tests.support.service.live import LiveGatebell
from tests.support.wire.garbage import bounded

pytestmark = pytest.mark.one_database("postgres")


@cache
def prover() -> Prover:
    """Return a key that tests share."""
    return Prover()


def rsa_jwk(bits: int, exponent: int = 65_537) -> dict[str, Any]:
    """Return an object that looks like a public key."""
    modulus = ((1 << bits) - 1).to_bytes((bits + 7) // 8)
    return {"kty": "RSA", "n": encoded(modulus), "e": encoded(exponent.to_bytes(3))}


def token_url(gatebell: LiveGatebell) -> str:
    return f"{gatebell.url}/oauth/token"


def claims_for(gatebell: LiveGatebell) -> dict[str, Any]:
    issued_at = int(now().timestamp())
    return {
        "jti": generate_random_hex(16),
        "htm": "POST",
        "htu": token_url(gatebell),
        "iat": issued_at,
    }


def send(gatebell: LiveGatebell, proof: str | bytes) -> requests.Response:
    """Send a proof with a request that fails in any case."""
    form = {
        "grant_type": "refresh_token",
        "client_id": phone_application(gatebell).client_id,
        "refresh_token": "gbr-nothing",
    }
    return post_token(gatebell, form, headers={"DPoP": proof})


def assert_proof_refused(gatebell: LiveGatebell, proof: str | bytes) -> None:
    assert_refused(send(gatebell, proof), "invalid_dpop_proof")


def test_a_valid_proof_is_accepted(gatebell: LiveGatebell) -> None:
    proof = prover().proof("POST", token_url(gatebell))
    assert_refused(send(gatebell, proof), "invalid_grant")


@pytest.mark.rfc("rfc9449-4.3-b", "rfc9449-4.3-h", "rfc9449-4.3-i", "rfc9449-4.3-j")
@pytest.mark.parametrize(
    "claims",
    [
        {"jti": ABSENT},
        {"jti": ""},
        {"jti": 5},
        {"jti": "x" * 513},
        {"htm": ABSENT},
        {"htm": "GET"},
        {"htm": "post"},
        {"htu": ABSENT},
        {"htu": "https://elsewhere.example/oauth/token"},
        {"htu": "http://[::1"},
        {"htu": None},
        {"iat": ABSENT},
        {"iat": "1"},
        {"iat": True},
        {"iat": 0},
        {"iat": float("nan")},
        {"iat": float("inf")},
        {"iat": 10**400},
        {"iat": -(10**30)},
    ],
    ids=lambda changes: repr(changes)[:40],
)
def test_each_claim_of_a_proof_is_validated(gatebell: LiveGatebell, claims: dict[str, Any]) -> None:
    proof = prover().proof("POST", token_url(gatebell), **claims)
    assert_proof_refused(gatebell, proof)


@pytest.mark.rfc("rfc9449-4.3-i")
@pytest.mark.parametrize("error", ["invalid_grant", "invalid_dpop_proof"])
def test_a_proof_is_valid_for_a_minute_before_and_after_its_time(
    gatebell: LiveGatebell, error: str
) -> None:
    seconds = 50 if error == "invalid_grant" else 70
    for offset in (seconds, -seconds):
        proof = prover().proof("POST", token_url(gatebell), iat=int(now().timestamp()) + offset)
        assert_refused(send(gatebell, proof), error)


@pytest.mark.advisory("CVE-2025-59420", "CVE-2025-61920")
@pytest.mark.rfc("rfc9449-4.3-c", "rfc9449-4.3-d", "rfc9449-4.3-f")
@pytest.mark.parametrize(
    "header",
    [
        {"typ": "JWT"},
        {"typ": ABSENT},
        {"typ": 5},
        {"jwk": ABSENT},
        {"jwk": "x"},
        {"jwk": {}},
        {"jwk": {"kty": []}},
        {"jwk": {"kty": "EC"}},
        {"jwk": {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}},
        {"jwk": {"kty": "EC", "crv": "P-0", "x": "AA", "y": "AA"}},
        {"jwk": {"kty": "RSA", "n": "AQAB" * 90, "e": "é"}},
        {"jwk": {"kty": "OKP", "crv": "X25519", "x": "A" * 43}},
        {"crit": ["exp"]},
        {"crit": 5},
        {"x": "y" * 3000},
    ],
    ids=lambda changes: repr(changes)[:40],
)
def test_the_header_of_a_proof_is_validated(gatebell: LiveGatebell, header: dict[str, Any]) -> None:
    assert_proof_refused(gatebell, prover().signed(claims_for(gatebell), header))


@pytest.mark.spec("L5", "L6")
@pytest.mark.parametrize(
    ("jwk", "reason"),
    [
        (rsa_jwk(1024), "1024 bits, which is too weak: use at least 2048"),
        (rsa_jwk(8200), "too large: use at most 8192"),
        (rsa_jwk(9000), "too large: use at most 8192"),
        (rsa_jwk(2048, exponent=1), "public exponent"),
        ({"kty": "EC", "crv": "P-192", "x": "AA", "y": "AA"}, "192 bits, which is too weak"),
    ],
    ids=["1024", "8200", "9000", "exponent", "P-192"],
)
def test_a_weak_or_huge_key_is_refused_with_its_reason(
    gatebell: LiveGatebell, jwk: dict[str, Any], reason: str
) -> None:
    answer = send(gatebell, prover().signed(claims_for(gatebell), {"alg": "RS256", "jwk": jwk}))
    assert_refused(answer, "invalid_dpop_proof")
    assert reason in answer.json()["error_description"]


@pytest.mark.spec("L5")
def test_a_large_rsa_key_is_accepted(gatebell: LiveGatebell) -> None:
    # An import of the key would take seconds, since the library tests the factors for primality.
    large = rsa_key(7640)
    key = RSAKey(large, large)
    proof = Prover(key, "RS256").proof("POST", token_url(gatebell))
    assert_refused(send(gatebell, proof), "invalid_grant")


@pytest.mark.advisory("CVE-2026-28802", "CVE-2026-114616")
@pytest.mark.rfc("rfc9449-4.3-e")
@pytest.mark.parametrize("algorithm", ["none", "HS256", "EdDSA", "ES256K", "", None, 5])
def test_unlisted_algorithms_are_rejected(gatebell: LiveGatebell, algorithm: Any) -> None:
    proof = prover().signed(claims_for(gatebell), {"alg": algorithm})
    assert_proof_refused(gatebell, proof)
    unsigned = ".".join([*proof.split(".")[:2], ""])
    assert_proof_refused(gatebell, unsigned)


@pytest.mark.advisory("CVE-2022-29217", "CVE-2024-37568")
@pytest.mark.rfc("rfc9449-4.3-e")
def test_a_public_key_cannot_be_used_as_an_hmac_secret(gatebell: LiveGatebell) -> None:
    key = RSAKey.generate_key(2048)
    head = {"typ": "dpop+jwt", "alg": "HS256", "jwk": key.as_dict(private=False)}
    text = f"{encoded(head)}.{encoded(claims_for(gatebell))}"
    pem = OctKey.import_key(key.as_bytes("PEM").replace(b"BEGIN", b"begin"))
    signature = JWSRegistry.algorithms["HS256"].sign(text.encode(), pem)
    assert_proof_refused(gatebell, f"{text}.{encoded(signature)}")
    secret = OctKey.generate_key(256)
    head = {"typ": "dpop+jwt", "alg": "HS256", "jwk": secret.as_dict(private=True)}
    text = f"{encoded(head)}.{encoded(claims_for(gatebell))}"
    signature = JWSRegistry.algorithms["HS256"].sign(text.encode(), secret)
    assert_proof_refused(gatebell, f"{text}.{encoded(signature)}")


@pytest.mark.rfc("rfc9449-4.3-g")
@pytest.mark.parametrize("algorithm", ["ES256", "Ed25519", "RS256"])
def test_a_private_key_in_the_header_is_refused(gatebell: LiveGatebell, algorithm: str) -> None:
    signer = Prover.with_algorithm(algorithm)
    jwk = signer.key.as_dict(private=True)
    assert_proof_refused(gatebell, signer.signed(claims_for(gatebell), {"jwk": jwk}))


@pytest.mark.rfc("rfc9449-4.3-f")
def test_a_proof_must_be_signed_with_the_key_that_it_contains(gatebell: LiveGatebell) -> None:
    other = Prover().key.as_dict(private=False)
    assert_proof_refused(gatebell, prover().signed(claims_for(gatebell), {"jwk": other}))
    proof = prover().signed(claims_for(gatebell), {})
    head, _, signature = proof.split(".")
    changed = encoded({**claims_for(gatebell), "jti": "another"})
    assert_proof_refused(gatebell, f"{head}.{changed}.{signature}")


def test_a_weak_rsa_key_is_refused(gatebell: LiveGatebell) -> None:
    with pytest.warns(match="2048"):
        weak = Prover(RSAKey.generate_key(1024), "RS256")
    assert_proof_refused(gatebell, weak.signed(claims_for(gatebell), {}))


@pytest.mark.rfc("rfc9449-4.3-a")
def test_two_proofs_are_rejected(gatebell: LiveGatebell) -> None:
    first, second = (prover().proof("POST", token_url(gatebell)) for _ in range(2))
    assert_proof_refused(gatebell, f"{first}, {second}")


@pytest.mark.parametrize(
    "proof", ["", "x", "a.b.c", "a.b.c.d.e", ".", "..", "é", "[]", "e30.e30.", "0" * 7000]
)
def test_a_malformed_proof_is_rejected(gatebell: LiveGatebell, proof: str) -> None:
    assert_proof_refused(gatebell, proof.encode())


def test_a_deeply_nested_proof_is_rejected(gatebell: LiveGatebell) -> None:
    for depth in (500, 1900):
        nested = b"[" * depth + b"]" * depth
        assert_proof_refused(gatebell, prover().signed(nested, {}))
        head = encoded(b'{"jwk":' + nested[: depth // 2] + b"}")
        assert_proof_refused(gatebell, f"{head}.e30.AA")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
MEMBERS = st.sampled_from(["typ", "alg", "jwk", "crit", "b64", "kid", "x5c", "zip"])
KEY_MEMBERS = st.sampled_from(["kty", "crv", "x", "y", "n", "e", "use", "key_ops", "alg", "kid"])
CLAIMS = st.sampled_from(["jti", "htm", "htu", "iat", "exp", "nonce", "ath"])


@pytest.mark.long
@bounded(60)
@given(
    header=st.dictionaries(MEMBERS, JSON, max_size=3),
    key=st.dictionaries(KEY_MEMBERS, JSON, max_size=3),
    claims=st.dictionaries(CLAIMS, JSON, max_size=3),
)
def test_a_signed_proof_with_any_content_is_handled(
    live_postgres: LiveGatebell, header: Any, key: Any, claims: Any
) -> None:
    jwk = {**prover().key.as_dict(private=False), **key}
    proof = prover().signed({**claims_for(live_postgres), **claims}, {"jwk": jwk, **header})
    answer = send(live_postgres, proof)
    assert answer.status_code in {400, 431}, answer.text
    if answer.status_code == 400:
        assert answer.json()["error"] in {"invalid_dpop_proof", "invalid_grant"}


@pytest.mark.long
@bounded(60)
@given(proof=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=200))
def test_a_random_text_is_rejected_as_a_proof(live_sqlite: LiveGatebell, proof: str) -> None:
    assert_proof_refused(live_sqlite, proof)
