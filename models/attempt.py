"""How often somebody guessed."""

from datetime import datetime

from sqlalchemy import LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class AttemptCount(Base):
    """Failed attempts for one subject (an account, an address) within a window of time.

    In the database, and not in a worker's memory, so that more workers are not more guesses.
    """

    __tablename__ = "attempt_counts"

    #: Keyed hash of what is guarded, so that the table names nobody.
    subject: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)
    count: Mapped[int]
    window_ends_at: Mapped[datetime] = mapped_column(index=True)
