"""Encryption and hashing of secrets, and random credentials."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.core.keyring import CredentialType, Keyring, UndecryptableError
from domain.core.randomness import (
    generate_credential,
    generate_random_hex,
    generate_random_password,
    is_well_formed,
)

OLD, NEW = "an old master secret, long ago", "a new master secret, since today"


@pytest.mark.rfc("rfc6749-10.3-a", "rfc6749-10.10-a", "rfc7009-5-a", "rfc7636-4.4-b")
def test_a_credential_has_a_prefix_256_random_bits_and_a_checksum() -> None:
    credential = generate_credential("gba-")
    assert credential.startswith("gba-")
    assert len(credential) == len("gba-") + 43 + 6
    assert credential.isascii()
    assert is_well_formed(credential, prefix="gba-")
    assert generate_credential("gba-") != credential


def test_every_kind_has_a_different_prefix() -> None:
    prefixes = [kind.value for kind in CredentialType]
    assert len(set(prefixes)) == len(prefixes)
    assert {"gba-", "gbr-", "gbs-", "gbp-", "gbk-"} <= set(prefixes)


@pytest.mark.rfc("rfc6750-5.2-a")
def test_a_mistyped_credential_is_detected_without_the_database() -> None:
    credential = generate_credential("gba-")
    for position in range(len(credential)):
        other = "x" if credential[position] != "x" else "y"
        wrong = credential[:position] + other + credential[position + 1 :]
        assert not is_well_formed(wrong, prefix="gba-")


@given(st.text())
def test_any_text_can_be_checked(text: str) -> None:
    assert not is_well_formed(text, prefix="gba-")
    assert not is_well_formed("gba-" + text[:49].ljust(49), prefix="gba-")
    assert Keyring(NEW).compute_digests(text, CredentialType.ACCESS_TOKEN) == ()


def test_a_credential_of_one_kind_is_not_looked_up_as_another() -> None:
    keyring = Keyring(NEW)
    token = keyring.issue_credential(CredentialType.ACCESS_TOKEN)
    assert keyring.compute_digests(token.clear, CredentialType.ACCESS_TOKEN) == (token.digest,)
    assert keyring.compute_digests(token.clear, CredentialType.REFRESH_TOKEN) == ()


@pytest.mark.rfc("rfc6749-10.3-b")
def test_the_stored_digest_depends_on_the_key() -> None:
    token = Keyring(OLD).issue_credential(CredentialType.ACCESS_TOKEN)
    assert len(token.digest) == 32
    assert token.digest != Keyring(NEW).compute_digest(token.clear)
    assert token.clear.encode() not in token.digest


def test_the_repr_of_a_credential_does_not_contain_it() -> None:
    token = Keyring(OLD).issue_credential(CredentialType.ACCESS_TOKEN)
    assert token.clear not in repr(token)


def test_credentials_of_older_keys_are_valid_after_a_rotation() -> None:
    token, sealed = (
        Keyring(OLD).issue_credential(CredentialType.CLIENT_SECRET),
        Keyring(OLD).encrypt("a key"),
    )
    rotated = Keyring(NEW, OLD)
    assert token.digest in rotated.compute_digests(token.clear, CredentialType.CLIENT_SECRET)
    assert rotated.matches_any_digest(token.clear, [None, token.digest])
    assert rotated.decrypt(sealed) == "a key"
    assert Keyring(NEW).decrypt(rotated.encrypt("new")) == "new"


def test_credentials_of_a_removed_key_are_invalid() -> None:
    token, sealed = (
        Keyring(OLD).issue_credential(CredentialType.CLIENT_SECRET),
        Keyring(OLD).encrypt("a key"),
    )
    assert not Keyring(NEW).matches_any_digest(token.clear, [token.digest])
    with pytest.raises(UndecryptableError):
        Keyring(NEW).decrypt(sealed)


@pytest.mark.long
@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_any_text_can_be_compared_with_stored_digests(text: str) -> None:
    keyring = Keyring(NEW)
    assert not keyring.matches_any_digest(text, [None, b"", b"\x00" * 32])
    assert keyring.matches_any_digest(text, [keyring.compute_digest(text)])


def test_no_text_matches_without_a_stored_digest() -> None:
    assert not Keyring(NEW).matches_any_digest("", [])
    assert not Keyring(NEW).matches_any_digest("", [None])


def test_a_generated_password_can_be_typed() -> None:
    groups = generate_random_password().split("-")
    assert [len(group) for group in groups] == [6, 6, 6, 6]
    assert generate_random_password() != generate_random_password()


@pytest.mark.rfc("rfc6749-2.2-a", "rfc9700-4.15.1-a")
def test_identifiers_are_lower_case_hexadecimal() -> None:
    assert len(generate_random_hex(32)) == 64
    assert set(generate_random_hex(32)) <= set("0123456789abcdef")
