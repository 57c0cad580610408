"""What teams write down to learn from: hand-over notes, and documents after incidents."""

from datetime import datetime

from sqlalchemy import Index, Integer, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, Numbered, belongs_to, refers_to


class OnCallHandoverNote(Numbered):
    """What somebody on call leaves for whoever is next in a schedule."""

    __tablename__ = "on_call_handover_notes"

    schedule_id: Mapped[int] = belongs_to("on_call_schedules")
    #: NULL for the command line.
    user_id: Mapped[int | None] = refers_to("users", index=True)
    #: Markdown.
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]

    __table_args__ = (Index("ix_on_call_handover_notes_schedule_id_id", "schedule_id", "id"),)


class IncidentDocument(Base):
    """What a team writes down after an incident."""

    __tablename__ = "incident_documents"

    incident_id: Mapped[int] = belongs_to("incidents", primary_key=True, autoincrement=False)
    #: Markdown.
    text: Mapped[str] = mapped_column(Text)
    #: Grows with each change: whoever saves says which one they changed.
    revision: Mapped[int] = mapped_column(Integer)
    #: Who changed it last; NULL for the command line.
    user_id: Mapped[int | None] = refers_to("users", index=True)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
