"""Codes on paper, for the day on which the other factors are lost; each is good once."""

import unicodedata
from datetime import datetime

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from domain.keyring import Keyring
from domain.randomness import random_letters
from models import RecoveryCode, User

#: Crockford's Base32 in small letters: nothing that looks like something else.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_AS_MEANT = str.maketrans("oil", "011")
HOW_MANY = 10
#: 60 bits; guesses are counted, and the digests are keyed.
_LENGTH = 12
_GROUP = 4


def renew_codes(
    user_id: int, *, session: Session, keyring: Keyring, now: datetime
) -> tuple[str, ...]:
    """Make new codes, as people see them; all earlier ones are worthless."""
    # Of two at once the second one has to see, and remove, what the first one made.
    session.execute(select(User.id).where(User.id == user_id).with_for_update())
    session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user_id))
    codes = [random_letters(_ALPHABET, _LENGTH) for _ in range(HOW_MANY)]
    session.add_all(
        RecoveryCode(user_id=user_id, digest=keyring.digest(_secret(code)), created_at=now)
        for code in codes
    )
    return tuple(_shown(code) for code in codes)


def read_code(typed: str) -> str | None:
    """Return the code that somebody typed, however they wrote it; None if it cannot be one."""
    folded = unicodedata.normalize("NFKC", typed).lower().replace("-", "").translate(_AS_MEANT)
    bare = "".join(folded.split())
    return bare if len(bare) == _LENGTH and set(bare) <= set(_ALPHABET) else None


def use_code(user_id: int, code: str, *, session: Session, keyring: Keyring, now: datetime) -> bool:
    """Tell whether this is a code of the user's, and make it worthless: one UPDATE does both."""
    claim = (
        update(RecoveryCode)
        .where(
            RecoveryCode.user_id == user_id,
            RecoveryCode.digest.in_(keyring.digests(_secret(code))),
            RecoveryCode.used_at.is_(None),
        )
        .values(used_at=now)
        .returning(RecoveryCode.id)
    )
    return session.scalar(claim) is not None


def _secret(code: str) -> str:
    return f"recovery code {code}"


def _shown(code: str) -> str:
    return "-".join(code[start : start + _GROUP] for start in range(0, _LENGTH, _GROUP))
