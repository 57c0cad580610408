"""Groups, projects and their members."""

from datetime import date, datetime

from sqlalchemy import (
    JSON,
    CheckConstraint,
    Date,
    ForeignKey,
    Index,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
    false,
    func,
    text,
    true,
)
from sqlalchemy.orm import Mapped, mapped_column

from models.base import BaseWithId, BigId, build_cascading_foreign_key, build_partial_index
from models.case_folding import build_folded_column, sync_folded_column


class Group(BaseWithId):
    """A group of projects and subgroups, or a user's personal namespace.

    For example, `acme/shops` is the group `shops` inside the group `acme`.
    """

    __tablename__ = "groups"

    parent_id: Mapped[int | None] = build_cascading_foreign_key("groups", index=True)
    name: Mapped[str] = mapped_column(String(255))
    #: Full path, unique after case folding.
    path: Mapped[str] = mapped_column(String(1024))
    description: Mapped[str] = mapped_column(Text, default="", server_default="")
    created_at: Mapped[datetime]
    #: User whose personal namespace this is. NULL for a group.
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    #: Time at which a second factor became mandatory for members. NULL if it is not mandatory.
    two_factor_required_at: Mapped[datetime | None] = mapped_column()
    #: Grace period in hours, which starts with the requirement or with the membership.
    two_factor_grace_period: Mapped[int] = mapped_column(default=48, server_default=text("48"))
    #: Time at which the group was deleted for all users. The worker removes its rows.
    deleted_at: Mapped[datetime | None] = mapped_column()
    path_key: Mapped[str | None] = build_folded_column()
    name_key: Mapped[str | None] = build_folded_column()

    __table_args__ = (
        build_partial_index(
            "ix_groups_two_factor_required_at",
            two_factor_required_at,
            where=two_factor_required_at.is_not(None),
        ),
        build_partial_index(
            "uq_groups_owner_id", owner_id, unique=True, where=owner_id.is_not(None)
        ),
        Index("uq_groups_path_lower", func.lower(path), unique=True),
        Index("uq_groups_path_key", path_key, unique=True),
        build_partial_index("ix_groups_deleted_at", deleted_at, where=deleted_at.is_not(None)),
    )


sync_folded_column(Group.path, Group.path_key)
sync_folded_column(Group.name, Group.name_key)


def _build_access_level() -> Mapped[str]:
    """Return the column for a project feature's access level: disabled, private or enabled."""
    return mapped_column(String(16), default="enabled", server_default="enabled")


class Project(BaseWithId):
    """A project in a group, with its visibility and the access levels of its features."""

    __tablename__ = "projects"

    group_id: Mapped[int] = build_cascading_foreign_key("groups")
    name: Mapped[str] = mapped_column(String(255))
    #: Full path: the group's path, a slash, and the project's own segment.
    path: Mapped[str] = mapped_column(String(1024))
    description: Mapped[str] = mapped_column(Text, default="", server_default="")
    #: Visibility: private, internal or public.
    visibility: Mapped[str] = mapped_column(String(16), default="private")
    created_at: Mapped[datetime]
    #: Time at which the project stopped accepting changes and alerts.
    archived_at: Mapped[datetime | None]
    #: Time at which the project was deleted for all users. The worker removes its rows.
    deleted_at: Mapped[datetime | None] = mapped_column()
    #: Time of the last push to the project's repository.
    pushed_at: Mapped[datetime | None]
    releases_access_level: Mapped[str] = _build_access_level()
    environments_access_level: Mapped[str] = _build_access_level()
    feature_flags_access_level: Mapped[str] = _build_access_level()
    infrastructure_access_level: Mapped[str] = _build_access_level()
    monitor_access_level: Mapped[str] = _build_access_level()
    #: True if CI job tokens of this project can access other projects only with their permission.
    limits_job_token_to_others: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: True if CI job tokens of other projects can access this project only with its permission.
    limits_job_tokens_of_others: Mapped[bool] = mapped_column(default=True, server_default=true())
    #: Highest deployment number that has been assigned.
    last_deployment_iid: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    path_key: Mapped[str | None] = build_folded_column()
    name_key: Mapped[str | None] = build_folded_column()

    __table_args__ = (
        Index("uq_projects_path_lower", func.lower(path), unique=True),
        Index("uq_projects_path_key", path_key, unique=True),
        # These indexes are used to list a group's projects in page order, and to filter them by
        # visibility.
        Index("ix_projects_group_id_path_key", "group_id", "path_key", "id"),
        Index("ix_projects_group_id_visibility", "group_id", "visibility"),
        build_partial_index("ix_projects_deleted_at", deleted_at, where=deleted_at.is_not(None)),
    )


sync_folded_column(Project.path, Project.path_key)
sync_folded_column(Project.name, Project.name_key)


class FormerPath(BaseWithId):
    """A reserved previous path of a group or project. URLs with this path still work."""

    __tablename__ = "former_paths"

    path: Mapped[str] = mapped_column(String(1024))
    #: Folded path, which receivers look up.
    path_key: Mapped[str] = mapped_column(Text)
    group_id: Mapped[int | None] = build_cascading_foreign_key("groups", index=True)
    project_id: Mapped[int | None] = build_cascading_foreign_key("projects", index=True)
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("uq_former_paths_path_key", path_key, unique=True),
        CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_place"),
    )


class Member(BaseWithId):
    """A user's direct role in a group, including its subgroups and projects, or in a project."""

    __tablename__ = "members"

    user_id: Mapped[int] = build_cascading_foreign_key("users")
    group_id: Mapped[int | None] = build_cascading_foreign_key("groups")
    project_id: Mapped[int | None] = build_cascading_foreign_key("projects")
    #: Role as a number, from Guest 10 to Owner 50.
    role: Mapped[int] = mapped_column(SmallInteger)
    created_at: Mapped[datetime]
    #: First day (in UTC) on which the role no longer applies.
    expires_at: Mapped[date | None] = mapped_column(Date)
    #: Custom role. It applies only while `role` is its base role.
    member_role_id: Mapped[int | None] = mapped_column(
        ForeignKey("member_roles.id", name="fk_members_member_role_id"), index=True
    )

    __table_args__ = (
        UniqueConstraint("user_id", "group_id"),
        UniqueConstraint("user_id", "project_id"),
        CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_place"),
        # This partial index contains only roles with an expiry date. With all rows, the planner
        # would scan the whole index for active roles.
        build_partial_index("ix_members_expires_at", expires_at, where=expires_at.is_not(None)),
        # These indexes list the members of a group or project in order.
        Index("ix_members_group_id_user_id", "group_id", "user_id"),
        Index("ix_members_project_id_user_id", "project_id", "user_id"),
    )


class ProjectShare(BaseWithId):
    """A group whose members are also members of a project, up to a maximum role."""

    __tablename__ = "project_shares"

    project_id: Mapped[int] = build_cascading_foreign_key("projects")
    group_id: Mapped[int] = build_cascading_foreign_key("groups", index=True)
    role: Mapped[int] = mapped_column(SmallInteger)
    #: First day (in UTC) on which the share no longer applies.
    expires_at: Mapped[date | None] = mapped_column(Date)
    created_at: Mapped[datetime]

    __table_args__ = (UniqueConstraint("project_id", "group_id"),)


class MemberRole(BaseWithId):
    """A custom role of the instance or of a group: a base role and additional permissions."""

    __tablename__ = "member_roles"

    #: Group of the role. NULL for a role of the instance. A role whose group is deleted becomes a
    #: role of the instance.
    group_id: Mapped[int | None] = mapped_column(BigId)
    name: Mapped[str] = mapped_column(String(255))
    description: Mapped[str] = mapped_column(Text)
    #: Role of members with this custom role, from Guest 10 to Maintainer 40.
    base_role: Mapped[int] = mapped_column(SmallInteger)
    #: Names of `Ability` members (domain/access/roles.py).
    abilities: Mapped[list[str]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    name_key: Mapped[str | None] = build_folded_column()

    __table_args__ = (UniqueConstraint("name_key"),)


sync_folded_column(MemberRole.name, MemberRole.name_key)


class Invitation(BaseWithId):
    """A pending offer of a role to the owner of an email address."""

    __tablename__ = "invitations"

    group_id: Mapped[int | None] = build_cascading_foreign_key("groups")
    project_id: Mapped[int | None] = build_cascading_foreign_key("projects")
    email: Mapped[str] = mapped_column(String(255))
    #: User who sent the invitation. It is valid only while this user can assign the role.
    invited_by: Mapped[int] = build_cascading_foreign_key("users", index=True)
    role: Mapped[int] = mapped_column(SmallInteger)
    created_at: Mapped[datetime] = mapped_column(index=True)
    #: First day (in UTC) on which the role of the membership no longer applies.
    expires_at: Mapped[date | None] = mapped_column(Date)
    email_key: Mapped[str | None] = build_folded_column()
    #: Authorization of the application that created the invitation. When the application loses
    #: access, the invitation is revoked.
    authorization_id: Mapped[int | None] = mapped_column(BigId)

    __table_args__ = (
        UniqueConstraint("group_id", "email_key"),
        UniqueConstraint("project_id", "email_key"),
        CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_place"),
    )


sync_folded_column(Invitation.email, Invitation.email_key)
