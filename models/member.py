"""Memberships."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, SmallInteger, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class Member(Base):
    """A user's direct role in a group (and all below it) or in a project."""

    __tablename__ = "members"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    group_id: Mapped[int | None] = mapped_column(
        ForeignKey("groups.id", ondelete="CASCADE"), index=True
    )
    project_id: Mapped[int | None] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), index=True
    )
    #: Guest 10 … Owner 50.
    role: Mapped[int] = mapped_column(SmallInteger)
    created_at: Mapped[datetime]

    __table_args__ = (
        UniqueConstraint("user_id", "group_id"),
        UniqueConstraint("user_id", "project_id"),
        CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_place"),
    )
