"""Where the published keys stand: which waits, which signs, which has ceased to."""

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


class Stage(Enum):
    """A key's time, in words."""

    #: Everybody can know it before it is needed.
    WAITS = "Waits"
    SIGNS = "Signs"
    #: Published for what it signed.
    CEASED = "Has ceased"


@dataclass(frozen=True, kw_only=True)
class StagedKey:
    """A published key, where it stands, and until when."""

    kid: str
    #: When it was made, and published from then on.
    created_at: datetime
    stage: Stage
    #: When it ceases to sign; None while nothing takes its place.
    signs_until: datetime | None

    @property
    def published_until(self) -> datetime | None:
        """When the last ID token that it signed has expired, whatever its lifetime."""
        return self.signs_until + LONGEST_ID_TOKEN if self.signs_until else None


def list_staged_keys(*, session: Session, keyring: Keyring, now: datetime) -> tuple[StagedKey, ...]:
    """Return the keys of the published set, the newest first."""
    signing = find_signing_kid(session=session, keyring=keyring, now=now)
    published = list_published_keys(session=session, now=now)
    return tuple(
        StagedKey(
            kid=key.kid,
            created_at=key.created_at,
            stage=_stage(key, signing, now),
            signs_until=key.retired_at,
        )
        for key in reversed(published)
    )


def _stage(key: PublishedKey, signing: str | None, now: datetime) -> Stage:
    if key.kid == signing:
        return Stage.SIGNS
    has_ceased = key.retired_at is not None and key.retired_at <= now
    return Stage.CEASED if has_ceased else Stage.WAITS
