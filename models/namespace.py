"""Groups and projects, which share the namespace of full paths, present and former ones."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, false, func, text, true
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
    description: Mapped[str] = mapped_column(Text, default="", server_default="")
    created_at: Mapped[datetime]
    #: Since when it is gone for everybody; the worker removes its rows.
    deleted_at: Mapped[datetime | None] = mapped_column()
    path_key: Mapped[str | None] = folded()
    name_key: Mapped[str | None] = folded()

    __table_args__ = (
        Index("uq_groups_path_lower", func.lower(path), unique=True),
        Index("uq_groups_path_key", path_key, unique=True),
        Index(
            "ix_groups_deleted_at",
            deleted_at,
            postgresql_where=deleted_at.is_not(None),
            sqlite_where=deleted_at.is_not(None),
        ),
    )


keep_folded(Group.path, Group.path_key)
keep_folded(Group.name, Group.name_key)


def _access_level() -> Mapped[str]:
    """Return the column of a part of a project: disabled, private or enabled."""
    return mapped_column(String(16), default="enabled", server_default="enabled")


class Project(Base):
    """A project, which alerts belong to."""

    __tablename__ = "projects"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    group_id: Mapped[int] = mapped_column(ForeignKey("groups.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(255))
    #: Full path: the group's path, a slash, the project's own part.
    path: Mapped[str] = mapped_column(String(1024))
    description: Mapped[str] = mapped_column(Text, default="", server_default="")
    #: private, internal or public.
    visibility: Mapped[str] = mapped_column(String(16), default="private")
    created_at: Mapped[datetime]
    #: Since when it takes no changes and no alerts.
    archived_at: Mapped[datetime | None]
    #: Since when it is gone for everybody; the worker removes its rows.
    deleted_at: Mapped[datetime | None] = mapped_column()
    #: When something was last pushed to its repository.
    pushed_at: Mapped[datetime | None]
    releases_access_level: Mapped[str] = _access_level()
    environments_access_level: Mapped[str] = _access_level()
    feature_flags_access_level: Mapped[str] = _access_level()
    infrastructure_access_level: Mapped[str] = _access_level()
    monitor_access_level: Mapped[str] = _access_level()
    #: Whether tokens of CI jobs of this project reach others only where these allow it.
    limits_job_token_to_others: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: Whether tokens of CI jobs of other projects reach this one only where it allows it.
    limits_job_tokens_of_others: Mapped[bool] = mapped_column(default=True, server_default=true())
    #: The highest number that a deployment ever had.
    last_deployment_iid: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    path_key: Mapped[str | None] = folded()
    name_key: Mapped[str | None] = folded()

    __table_args__ = (
        Index("uq_projects_path_lower", func.lower(path), unique=True),
        Index("uq_projects_path_key", path_key, unique=True),
        # The projects of a group in the order of its page, and who sees the group.
        Index("ix_projects_group_id_path_key", "group_id", "path_key", "id"),
        Index("ix_projects_group_id_visibility", "group_id", "visibility"),
        Index(
            "ix_projects_deleted_at",
            deleted_at,
            postgresql_where=deleted_at.is_not(None),
            sqlite_where=deleted_at.is_not(None),
        ),
    )


keep_folded(Project.path, Project.path_key)
keep_folded(Project.name, Project.name_key)


class FormerPath(Base):
    """A path that a group or project had: its URLs still lead there, and nobody else gets it."""

    __tablename__ = "former_paths"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    path: Mapped[str] = mapped_column(String(1024))
    #: Folded: receivers look for it.
    path_key: Mapped[str] = mapped_column(Text)
    group_id: Mapped[int | None] = mapped_column(
        ForeignKey("groups.id", ondelete="CASCADE"), index=True
    )
    project_id: Mapped[int | None] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), index=True
    )
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("uq_former_paths_path_key", path_key, unique=True),
        CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_place"),
    )
