"""Counters of attempts."""

from datetime import datetime

from sqlalchemy import LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class AttemptCount(Base):
    """Attempts for one subject (an account, an IP address) within a window of time.

    In the database, so that all processes share the limit.
    """

    __tablename__ = "attempt_counts"

    #: Keyed hash of the subject, so that the table contains no names.
    subject: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)
    count: Mapped[int]
    window_ends_at: Mapped[datetime] = mapped_column(index=True)
