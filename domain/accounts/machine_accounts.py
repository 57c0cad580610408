"""Machine accounts: bots for access tokens, and service accounts for applications.

The accounts cannot be used to sign in. They are kept when their tokens or applications are deleted,
because events still refer to them.
"""

from datetime import datetime

from sqlalchemy.orm import Session

from domain.accounts.users import ACTIVE
from domain.core.randomness import generate_random_hex
from models import User

#: Password hash that no password matches.
_UNUSABLE_PASSWORD_HASH = "!"  # noqa: S105 - the opposite of one


def create_machine_account(
    prefix: str, name: str, kind: str, *, session: Session, now: datetime
) -> User:
    """Create a machine account whose username starts with the prefix."""
    username = f"{prefix}_{generate_random_hex(16)}"
    user = User(
        username=username,
        # RFC 2606 section 2: no email can be delivered to this domain.
        email=f"{username}@noreply.invalid",
        name=name,
        password_hash=_UNUSABLE_PASSWORD_HASH,
        state=ACTIVE,
        kind=kind,
        created_at=now,
        last_sign_in_at=None,
        password_changed_at=None,
    )
    session.add(user)
    session.flush()  # Flushing assigns the ID.
    return user
