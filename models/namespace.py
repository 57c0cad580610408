"""Groups and projects, which share the namespace of full paths."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String, func
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId
from models.folding import folded, keep_folded


class Group(Base):
    """A namespace; `acme/shops` is the group `shops` inside `acme`."""

    __tablename__ = "groups"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    parent_id: Mapped[int | None] = mapped_column(
        ForeignKey("groups.id", ondelete="CASCADE"), index=True
    )
    name: Mapped[str] = mapped_column(String(255))
    #: Full path; unique after case folding.
    path: Mapped[str] = mapped_column(String(1024))
    created_at: Mapped[datetime]
    path_key: Mapped[str | None] = folded()

    __table_args__ = (
        Index("uq_groups_path_lower", func.lower(path), unique=True),
        Index("uq_groups_path_key", path_key, unique=True),
    )


keep_folded(Group.path, Group.path_key)


class Project(Base):
    """A project, which alerts belong to."""

    __tablename__ = "projects"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    group_id: Mapped[int] = mapped_column(ForeignKey("groups.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(255))
    #: Full path: the group's path, a slash, the project's own part.
    path: Mapped[str] = mapped_column(String(1024))
    #: private, internal or public.
    visibility: Mapped[str] = mapped_column(String(16), default="private")
    created_at: Mapped[datetime]
    path_key: Mapped[str | None] = folded()

    __table_args__ = (
        Index("uq_projects_path_lower", func.lower(path), unique=True),
        Index("uq_projects_path_key", path_key, unique=True),
    )


keep_folded(Project.path, Project.path_key)
