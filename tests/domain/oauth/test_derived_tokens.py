"""Credentials that are derived from other credentials."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.core.keyring import CredentialType, Keyring
from domain.core.randomness import generate_credential, is_well_formed

RING = Keyring("a master secret that is long enough")


@pytest.mark.long
@given(text=st.from_regex(r"gbr-[0-9A-Za-z]{49}", fullmatch=True))
def test_a_derived_token_is_well_formed_and_deterministic(text: str) -> None:
    for kind in (CredentialType.ACCESS_TOKEN, CredentialType.REFRESH_TOKEN):
        (derived,) = RING.derive_credentials(text, kind)
        assert is_well_formed(derived, prefix=kind)
        assert RING.derive_credentials(text, kind) == (derived,)


def test_derived_tokens_depend_on_token_kind_and_key() -> None:
    first, second = (generate_credential(CredentialType.REFRESH_TOKEN) for _ in range(2))
    other_ring = Keyring("another master secret that is long enough")
    found = {
        ring.derive_credentials(text, kind)[0][4:47]
        for ring in (RING, other_ring)
        for text in (first, second)
        for kind in (CredentialType.ACCESS_TOKEN, CredentialType.REFRESH_TOKEN)
    }
    assert len(found) == 8


def test_tokens_derived_from_the_old_key_are_known_after_a_rotation() -> None:
    token = generate_credential(CredentialType.REFRESH_TOKEN)
    rotated = Keyring("the newest master secret of all", "a master secret that is long enough")
    newest, older = rotated.derive_credentials(token, CredentialType.ACCESS_TOKEN)
    assert (older,) == RING.derive_credentials(token, CredentialType.ACCESS_TOKEN)
    assert newest != older
