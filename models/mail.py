"""The outbox of e-mail."""

from datetime import datetime

from sqlalchemy import Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class Mail(Base):
    """A message to one recipient, sent by the worker."""

    __tablename__ = "mails"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    #: Identifies the message: a second one with the same key is not stored.
    key: Mapped[str] = mapped_column(String(255), unique=True)
    recipient: Mapped[str] = mapped_column(String(255))
    subject: Mapped[str] = mapped_column(String(255))
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: NULL when it was sent or given up.
    next_try_at: Mapped[datetime | None] = mapped_column(index=True)
    tries: Mapped[int] = mapped_column(Integer, default=0)
    sent_at: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column(Text)
