"""The checks of the self-monitor."""

from datetime import datetime

from sqlalchemy import Integer, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class SelfMonitorCheck(Base):
    """One synthetic alert on its way through the service."""

    __tablename__ = "self_monitor_checks"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    started_at: Mapped[datetime]
    #: Milliseconds from the request until its response, until the first page had left and until the
    #: resolution was answered; NULL for a step that did not happen.
    stored_ms: Mapped[int | None] = mapped_column(Integer)
    paged_ms: Mapped[int | None] = mapped_column(Integer)
    resolved_ms: Mapped[int | None] = mapped_column(Integer)
    #: What went wrong, as a sentence; NULL for nothing.
    problem: Mapped[str | None] = mapped_column(Text)
    #: Why the dead man's switch did not take its ping.
    switch_problem: Mapped[str | None] = mapped_column(Text)
