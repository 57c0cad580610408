"""Results that external CI reports: deployments, commit statuses, and releases with links."""

from datetime import datetime

from sqlalchemy import Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import BaseWithId, BigId, build_cascading_foreign_key, build_set_null_foreign_key


class Deployment(BaseWithId):
    """A deployment of a commit to an environment."""

    __tablename__ = "deployments"

    project_id: Mapped[int] = build_cascading_foreign_key("projects")
    #: Number within the project.
    iid: Mapped[int]
    environment_id: Mapped[int] = build_cascading_foreign_key("environments")
    #: Hash of the commit, as reported.
    sha: Mapped[str] = mapped_column(String(64))
    #: Name of the branch or tag.
    ref: Mapped[str] = mapped_column(String(255))
    is_tag: Mapped[bool]
    status: Mapped[str] = mapped_column(String(16))
    user_id: Mapped[int | None] = build_set_null_foreign_key("users", index=True)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    #: Time at which the deployment ended, with any result.
    finished_at: Mapped[datetime | None]

    __table_args__ = (
        UniqueConstraint("project_id", "iid"),
        # The environment's page shows the newest deployments.
        Index("ix_deployments_environment_id_id", "environment_id", "id"),
        Index("ix_deployments_project_id_updated_at", "project_id", "updated_at", "id"),
        Index("ix_deployments_project_id_finished_at", "project_id", "finished_at", "id"),
    )


class CommitStatus(BaseWithId):
    """The status of a commit in one job of external CI. A new report updates the row."""

    __tablename__ = "commit_statuses"

    project_id: Mapped[int] = build_cascading_foreign_key("projects")
    sha: Mapped[str] = mapped_column(String(64))
    #: Branch or tag. Empty if the reporter did not provide a branch or tag.
    ref: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(String(255))
    stage: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16))
    target_url: Mapped[str | None] = mapped_column(Text)
    description: Mapped[str | None] = mapped_column(Text)
    coverage: Mapped[float | None]
    allow_failure: Mapped[bool]
    pipeline_id: Mapped[int | None] = mapped_column(BigId)
    user_id: Mapped[int | None] = build_set_null_foreign_key("users", index=True)
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]

    __table_args__ = (Index("ix_commit_statuses_project_id_sha", "project_id", "sha", "id"),)


class ProjectRelease(BaseWithId):
    """A release of a project, identified by its tag."""

    __tablename__ = "project_releases"

    project_id: Mapped[int] = build_cascading_foreign_key("projects")
    tag_name: Mapped[str] = mapped_column(String(255))
    name: Mapped[str] = mapped_column(String(255))
    #: Description in Markdown.
    description: Mapped[str] = mapped_column(Text)
    #: Branch, tag or commit that the tag was created from, if known.
    ref: Mapped[str | None] = mapped_column(String(255))
    user_id: Mapped[int | None] = build_set_null_foreign_key("users", index=True)
    created_at: Mapped[datetime]
    released_at: Mapped[datetime]

    __table_args__ = (
        UniqueConstraint("project_id", "tag_name"),
        Index("ix_project_releases_project_id_released_at", "project_id", "released_at", "id"),
    )


class ReleaseLink(BaseWithId):
    """A link from a release to a file that is stored elsewhere."""

    __tablename__ = "release_links"

    release_id: Mapped[int] = build_cascading_foreign_key("project_releases")
    name: Mapped[str] = mapped_column(String(255))
    url: Mapped[str] = mapped_column(Text)
    #: Type: other, runbook, image or package.
    link_type: Mapped[str] = mapped_column(String(16))

    __table_args__ = (
        UniqueConstraint("release_id", "name"),
        UniqueConstraint("release_id", "url"),
    )
