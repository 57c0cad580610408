"""Signed, expiring links that acknowledge the alerts of a page without signing in.

The signature is that of other signed state (`web/sealing/sealer.py`). The expiry is part of what
is signed, because the worker that writes messages has a clock of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from itsdangerous import BadData, URLSafeSerializer

from domain.errors import GoneError, NotFoundError

#: A page about an alert that nobody looked at for longer is no reason to acknowledge it unseen.
LINK_LIFETIME = timedelta(days=3)
_PURPOSE = "acknowledge from a message"


@dataclass(frozen=True, kw_only=True)
class AcknowledgementLink:
    """What a link stands for: the pages of some batches, and the person they were sent to."""

    user_id: int
    #: The first and the last batch of the message; those between them went to the person as well.
    first_batch_id: int
    last_batch_id: int


def seal_link(link: AcknowledgementLink, keys: Sequence[str], *, now: datetime) -> str:
    """Return the signed text of a link; `keys` has the key that signs first."""
    expires = int((now + LINK_LIFETIME).timestamp())
    parts = [link.user_id, link.first_batch_id, link.last_batch_id, expires]
    return str(_serializer(keys).dumps(parts))


def open_link(text: str, keys: Sequence[str], *, now: datetime) -> AcknowledgementLink:
    """Return what a signed text stands for; raise NotFoundError, or GoneError if it has expired."""
    try:
        parts = _serializer(keys).loads(text)
    except BadData as error:
        message = "This link is not valid. Check that it was copied completely."
        raise NotFoundError(message) from error
    user_id, first, last, expires = map(int, parts)
    if datetime.fromtimestamp(expires, tz=UTC) <= now:
        message = "This link has expired. Sign in to acknowledge the alert."
        raise GoneError(message)
    return AcknowledgementLink(user_id=user_id, first_batch_id=first, last_batch_id=last)


def _serializer(keys: Sequence[str]) -> URLSafeSerializer:
    # The library signs with the last key.
    return URLSafeSerializer(list(reversed(keys)), salt=_PURPOSE)
