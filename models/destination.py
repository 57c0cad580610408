"""The columns of all destinations of signed messages: URL, secrets, state of the delivery."""

from datetime import datetime

from sqlalchemy import Integer, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import BigId, Numbered


class Destination(Numbered):
    """A URL that messages are sent to, and the state of their delivery."""

    __abstract__ = True

    #: The URL until a worker has encrypted it, and then
    #: `domain.delivery.outgoing.destinations.ENCRYPTED_URL`. Older releases send to this URL.
    url: Mapped[str] = mapped_column(Text)
    #: The URL, encrypted with SECRET_KEY, because many URLs contain a secret.
    url_ciphertext: Mapped[str | None] = mapped_column(Text)
    #: Encrypted with SECRET_KEY; the former secret signs as well until it expires.
    secret_ciphertext: Mapped[str] = mapped_column(Text)
    previous_secret_ciphertext: Mapped[str | None] = mapped_column(Text)
    previous_secret_expires_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    #: NULL while messages are delivered.
    paused_at: Mapped[datetime | None]
    last_delivered_at: Mapped[datetime | None]
    #: Failed attempts since the last success, the first and the last of them.
    tries: Mapped[int] = mapped_column(Integer, default=0)
    failing_since: Mapped[datetime | None]
    last_failed_at: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column(Text)
    #: Nothing is sent before this moment; NULL: whenever there is a message.
    next_try_at: Mapped[datetime | None]
    #: The number of the last claim, and until when no other worker may deliver.
    claim: Mapped[int] = mapped_column(BigId, default=0)
    claimed_until: Mapped[datetime | None]
