"""Signing keys: one key signs, and old keys stay published while clients need them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.core.errors import InvalidError
from domain.core.keyring import Keyring
from domain.housekeeping.pruning import Retention, prune_expired_rows
from domain.oauth.openid.id_tokens import InvalidHintError, parse_id_token_hint
from domain.oauth.openid.signing_keys import (
    KEY_NOTICE_PERIOD,
    MAX_ID_TOKEN_LIFETIME,
    KeyRotation,
    check_key_size,
    find_public_key,
    get_or_create_signing_key,
    list_published_keys,
    rotate_id_token_key,
)
from models import SigningKey

pytestmark = pytest.mark.one_database("sqlite")

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEYRING = Keyring("a master secret that only this test has")
ISSUER = "https://gatebell.example"
#: Smallest step before or after the end of a period.
MOMENT = timedelta(seconds=1)

Rotate = Callable[..., str]
Signer = Callable[..., str]


@pytest.fixture
def signer(session: Session) -> Signer:
    def kid_at(moment: datetime, keyring: Keyring = KEYRING) -> str:
        return str(get_or_create_signing_key(session=session, keyring=keyring, now=moment).kid)

    return kid_at


@pytest.fixture
def hand_over(session: Session) -> Rotate:
    def hand_over_at(moment: datetime, how: KeyRotation = KeyRotation.AFTER_NOTICE) -> str:
        return rotate_id_token_key(how, session=session, keyring=KEYRING, now=moment)

    return hand_over_at


def published(session: Session, moment: datetime) -> list[str]:
    return [key.kid for key in list_published_keys(session=session, now=moment)]


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("D5")
def test_the_first_key_is_created_on_demand_and_kept(session: Session, signer: Signer) -> None:
    assert published(session, NOON) == []
    kid = signer(NOON)
    assert signer(NOON + timedelta(days=400)) == kid
    assert published(session, NOON) == [kid]


@pytest.mark.spec("D5")
def test_a_key_id_is_its_thumbprint_and_private_parts_are_encrypted(
    session: Session, signer: Signer
) -> None:
    kid = signer(NOON)
    (row,) = session.scalars(select(SigningKey)).all()
    assert set(row.public_jwk) == {"kty", "n", "e", "use", "alg", "kid"}
    assert RSAKey.import_key(dict(row.public_jwk)).thumbprint() == kid
    private = json.loads(KEYRING.decrypt(row.private_ciphertext))
    assert private["d"] not in row.private_ciphertext


def test_a_new_key_is_published_before_it_signs(
    session: Session, signer: Signer, hand_over: Rotate
) -> None:
    old = signer(NOON)
    new = hand_over(NOON)
    assert published(session, NOON) == [old, new]
    assert signer(NOON + KEY_NOTICE_PERIOD - MOMENT) == old
    assert signer(NOON + KEY_NOTICE_PERIOD) == new


@pytest.mark.both_databases
@pytest.mark.rfc("oidc-core-10.1.1-a")
def test_an_old_key_stays_published_until_its_tokens_have_expired(
    session: Session, signer: Signer, hand_over: Rotate
) -> None:
    old = signer(NOON)
    new = hand_over(NOON)
    last = NOON + KEY_NOTICE_PERIOD + MAX_ID_TOKEN_LIFETIME
    assert published(session, last - MOMENT) == [old, new]
    assert published(session, last) == [new]


@pytest.mark.long
@pytest.mark.both_databases
def test_rotating_again_before_the_new_key_signs_keeps_all_keys(
    session: Session, signer: Signer, hand_over: Rotate
) -> None:
    first = signer(NOON)
    second = hand_over(NOON)
    half = NOON + KEY_NOTICE_PERIOD / 2
    third = hand_over(half)
    assert published(session, half) == [first, second, third]
    assert signer(half) == first
    assert signer(NOON + KEY_NOTICE_PERIOD) == second
    assert signer(half + KEY_NOTICE_PERIOD) == third


@pytest.mark.long
def test_a_new_key_can_sign_immediately(
    session: Session, signer: Signer, hand_over: Rotate
) -> None:
    old = signer(NOON)
    waiting = hand_over(NOON)
    new = hand_over(NOON, KeyRotation.AT_ONCE)
    assert signer(NOON) == new
    assert published(session, NOON) == [old, waiting, new]


def test_a_leaked_key_is_removed_immediately(
    session: Session, signer: Signer, hand_over: Rotate
) -> None:
    old = signer(NOON)
    new = hand_over(NOON, KeyRotation.OLD_KEYS_LEAKED)
    assert published(session, NOON) == [new]
    assert find_public_key(old, session=session) is None


def test_a_rotation_without_keys_creates_the_first_one(signer: Signer, hand_over: Rotate) -> None:
    first = hand_over(NOON)
    assert signer(NOON) == first


def test_keys_of_a_lost_master_secret_are_skipped(session: Session, signer: Signer) -> None:
    old = signer(NOON)
    other = Keyring("another master secret, for the first was lost")
    new = signer(NOON, other)
    assert new != old
    assert published(session, NOON) == [old, new]
    # Each keyring continues with the keys that it can decrypt, and no more keys are created.
    assert signer(NOON, other) == new
    assert signer(NOON) == old


@pytest.mark.long
def test_a_key_survives_a_change_of_the_master_secret(signer: Signer) -> None:
    old = signer(NOON)
    assert signer(NOON, Keyring("new", "a master secret that only this test has")) == old


@pytest.mark.spec("L5")
@pytest.mark.parametrize("bits", [-1, 0, 512, 1024, 2047, 2049, 8193, 8200, 16384])
def test_keys_that_are_too_short_or_too_long_are_rejected(bits: int) -> None:
    with pytest.raises(InvalidError, match="2048 to 8192"):
        check_key_size(bits)


@pytest.mark.spec("L5")
def test_no_key_of_a_wrong_size_is_created(session: Session) -> None:
    with pytest.raises(InvalidError, match="2048 to 8192"):
        rotate_id_token_key(
            KeyRotation.AT_ONCE, bits=2047, session=session, keyring=KEYRING, now=NOON
        )
    assert published(session, NOON) == []


@pytest.mark.spec("L5")
@pytest.mark.parametrize("bits", [2048, 3072, 4096, 8192])
def test_usual_sizes_are_accepted(bits: int) -> None:
    check_key_size(bits)


@pytest.mark.long
@pytest.mark.both_databases
def test_keys_retired_long_ago_are_pruned(
    session: Session, signer: Signer, hand_over: Rotate
) -> None:
    old = signer(NOON)
    new = hand_over(NOON)
    session.commit()
    retention = Retention(keep_deliveries=10, keep_for=timedelta(days=1))
    for days, kept in ((29, [True, True]), (32, [False, True])):
        moment = NOON + timedelta(days=days)
        prune_expired_rows(retention, session=session, now=moment, commit_batch=session.commit)
        found = [find_public_key(kid, session=session) is not None for kid in (old, new)]
        assert found == kept


CLAIMS = {"iss": ISSUER, "sub": "7", "aud": "an-application", "exp": 1, "iat": 0}


def signed(session: Session, *, header: dict[str, str], claims: dict[str, object]) -> str:
    key = get_or_create_signing_key(session=session, keyring=KEYRING, now=NOON)
    head = {"alg": "RS256", "kid": str(key.kid), **header}
    return jwt.encode(head, {**CLAIMS, **claims}, key)


@pytest.mark.rfc("oidc-logout-2-b")
def test_an_expired_hint_is_accepted(session: Session) -> None:
    found = parse_id_token_hint(
        signed(session, header={}, claims={}), issuer=ISSUER, session=session
    )
    assert (found.user_id, found.application_uid) == (7, "an-application")


def test_a_hint_with_other_claims_is_rejected(session: Session) -> None:
    wrong: tuple[dict[str, object], ...] = (
        {"iss": "https://other.example"},
        {"sub": 7},
        {"sub": None},
        {"aud": ["a", "b"]},
    )
    for claims in wrong:
        with pytest.raises(InvalidHintError):
            parse_id_token_hint(
                signed(session, header={}, claims=claims), issuer=ISSUER, session=session
            )


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.rfc("oidc-core-16-b")
def test_a_hint_with_an_unknown_key_is_rejected(session: Session) -> None:
    for kid in ("", "unknown", "\x00", "' OR 1=1 --"):
        text = signed(session, header={"kid": kid}, claims={})
        with pytest.raises(InvalidHintError):
            parse_id_token_hint(text, issuer=ISSUER, session=session)
