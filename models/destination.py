"""The columns shared by all destinations of signed messages: URL, secrets and delivery status."""

from datetime import datetime

from sqlalchemy import Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import ClaimedRow


class Destination(ClaimedRow):
    """A URL that messages are sent to, and its delivery status."""

    __abstract__ = True

    #: URL in plaintext until a worker has encrypted it, and then
    #: `domain.delivery.outgoing.destinations.ENCRYPTED_URL`. Older releases send to this URL.
    url: Mapped[str] = mapped_column(Text)
    #: URL encrypted with SECRET_KEY, because many URLs contain a secret.
    url_ciphertext: Mapped[str | None] = mapped_column(Text)
    #: Secrets encrypted with SECRET_KEY. Messages are also signed with the previous secret until it
    #: expires.
    secret_ciphertext: Mapped[str] = mapped_column(Text)
    previous_secret_ciphertext: Mapped[str | None] = mapped_column(Text)
    previous_secret_expires_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    #: Time at which deliveries were paused. NULL while messages are delivered.
    paused_at: Mapped[datetime | None]
    last_delivered_at: Mapped[datetime | None]
    #: Earliest time of the next attempt. NULL if queued messages can be sent immediately.
    next_try_at: Mapped[datetime | None]
