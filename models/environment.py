"""The environments of projects."""

from datetime import datetime

from sqlalchemy import ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId
from models.folding import folded, keep_folded


class Environment(Base):
    """An environment of a project; alerts refer to it by its name."""

    __tablename__ = "environments"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
    #: Where it runs.
    external_url: Mapped[str | None] = mapped_column(Text)
    name_key: Mapped[str | None] = folded()

    __table_args__ = (UniqueConstraint("project_id", "name"),)


keep_folded(Environment.name, Environment.name_key)
