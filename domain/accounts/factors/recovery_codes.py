"""Single-use recovery codes for users who have lost their other second factors."""

import unicodedata
from datetime import datetime

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_letters
from models import RecoveryCode, User

#: Crockford's Base32 alphabet in lowercase, which excludes look-alike characters.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LOOKALIKES = str.maketrans("oil", "011")
RECOVERY_CODE_COUNT = 10
#: Number of characters in a code (60 bits). This is enough because attempts are limited and the
#: stored digests are keyed.
_CODE_LENGTH = 12
_GROUP_LENGTH = 4


def replace_recovery_codes(
    user_id: int, *, session: Session, keyring: Keyring, now: datetime
) -> tuple[str, ...]:
    """Replace all recovery codes of a user and return the new codes in plain text."""
    # The lock ensures that the second of two concurrent requests removes the codes that the first
    # request creates.
    session.execute(select(User.id).where(User.id == user_id).with_for_update())
    session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user_id))
    codes = [generate_random_letters(_ALPHABET, _CODE_LENGTH) for _ in range(RECOVERY_CODE_COUNT)]
    session.add_all(
        RecoveryCode(
            user_id=user_id,
            digest=keyring.compute_digest(_build_digest_input(code)),
            created_at=now,
        )
        for code in codes
    )
    return tuple(_format_code(code) for code in codes)


def normalize_recovery_code(typed_code: str) -> str | None:
    """Normalize the case, spaces and dashes of a typed code.

    Return None if the code is malformed.
    """
    folded = (
        unicodedata.normalize("NFKC", typed_code).lower().replace("-", "").translate(_LOOKALIKES)
    )
    bare = "".join(folded.split())
    return bare if len(bare) == _CODE_LENGTH and set(bare) <= set(_ALPHABET) else None


def use_recovery_code(
    user_id: int, code: str, *, session: Session, keyring: Keyring, now: datetime
) -> bool:
    """Consume a recovery code of the user, and return whether the code was valid.

    A single UPDATE checks and consumes the code.
    """
    claim = (
        update(RecoveryCode)
        .where(
            RecoveryCode.user_id == user_id,
            RecoveryCode.digest.in_(keyring.compute_digests(_build_digest_input(code))),
            RecoveryCode.used_at.is_(None),
        )
        .values(used_at=now)
        .returning(RecoveryCode.id)
    )
    return session.scalar(claim) is not None


def _build_digest_input(code: str) -> str:
    return f"recovery code {code}"


def _format_code(code: str) -> str:
    return "-".join(
        code[start : start + _GROUP_LENGTH] for start in range(0, _CODE_LENGTH, _GROUP_LENGTH)
    )
