"""The lifecycle of the published keys: published, then signing, then retired."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from sqlalchemy.orm import Session

from domain.keyring import Keyring
from domain.oauth.openid.keys import (
    LONGEST_ID_TOKEN,
    PublishedKey,
    find_signing_kid,
    list_published_keys,
)


class KeyState(Enum):
    """The state of a key; the values are shown on the page."""

    #: In the key set, so that clients can fetch it before it signs.
    PUBLISHED = "Waits"
    SIGNING = "Signs"
    #: Still in the key set, for the ID tokens that it has signed.
    RETIRED = "Has ceased"


@dataclass(frozen=True, kw_only=True)
class KeyStatus:
    """A published key with its state and its dates."""

    kid: str
    #: When it was made, and published from then on.
    created_at: datetime
    state: KeyState
    #: When it ceases to sign; None while nothing takes its place.
    signs_until: datetime | None

    @property
    def published_until(self) -> datetime | None:
        """The latest time at which an ID token that it signed expires."""
        return self.signs_until + LONGEST_ID_TOKEN if self.signs_until else None


def list_key_lifecycle(
    *, session: Session, keyring: Keyring, now: datetime
) -> tuple[KeyStatus, ...]:
    """Return the keys of the published set, the newest first."""
    signing = find_signing_kid(session=session, keyring=keyring, now=now)
    published = list_published_keys(session=session, now=now)
    return tuple(
        KeyStatus(
            kid=key.kid,
            created_at=key.created_at,
            state=_state(key, signing, now),
            signs_until=key.retired_at,
        )
        for key in reversed(published)
    )


def _state(key: PublishedKey, signing: str | None, now: datetime) -> KeyState:
    if key.kid == signing:
        return KeyState.SIGNING
    has_ceased = key.retired_at is not None and key.retired_at <= now
    return KeyState.RETIRED if has_ceased else KeyState.PUBLISHED
