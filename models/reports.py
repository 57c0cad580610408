"""Handoff notes and post-incident documents."""

from datetime import datetime

from sqlalchemy import Index, Integer, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BaseWithId, build_cascading_foreign_key, build_set_null_foreign_key


class OnCallHandoverNote(BaseWithId):
    """A note from the user on call to the next user on call in a schedule."""

    __tablename__ = "on_call_handover_notes"

    schedule_id: Mapped[int] = build_cascading_foreign_key("on_call_schedules")
    #: Author of the note. NULL for the command line.
    user_id: Mapped[int | None] = build_set_null_foreign_key("users", index=True)
    #: Text in Markdown.
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]

    __table_args__ = (Index("ix_on_call_handover_notes_schedule_id_id", "schedule_id", "id"),)


class IncidentDocument(Base):
    """The document that a team writes after an incident."""

    __tablename__ = "incident_documents"

    incident_id: Mapped[int] = build_cascading_foreign_key(
        "incidents", primary_key=True, autoincrement=False
    )
    #: Text in Markdown.
    text: Mapped[str] = mapped_column(Text)
    #: Number that increases with each change. Requests that save the document contain the revision
    #: on which the change is based.
    revision: Mapped[int] = mapped_column(Integer)
    #: User who made the last change. NULL for the command line.
    user_id: Mapped[int | None] = build_set_null_foreign_key("users", index=True)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
