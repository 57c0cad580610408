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

from models.base import BigId, Numbered, belongs_to, partial_index
from models.folding import folded, keep_folded


class Group(Numbered):
    """A namespace; `acme/shops` is the group `shops` inside `acme`."""

    __tablename__ = "groups"

    parent_id: Mapped[int | None] = belongs_to("groups", index=True)
    name: Mapped[str] = mapped_column(String(255))
    #: Full path; unique after case folding.
    path: Mapped[str] = mapped_column(String(1024))
    description: Mapped[str] = mapped_column(Text, default="", server_default="")
    created_at: Mapped[datetime]
    #: The person whose personal namespace it is; NULL: it is a group.
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    #: Since when its members have to have a second factor; NULL: they need not.
    two_factor_required_at: Mapped[datetime | None] = mapped_column()
    #: How many hours they have from then on, or from the beginning of their membership.
    two_factor_grace_period: Mapped[int] = mapped_column(default=48, server_default=text("48"))
    #: Since when it is gone for everybody; the worker removes its rows.
    deleted_at: Mapped[datetime | None] = mapped_column()
    path_key: Mapped[str | None] = folded()
    name_key: Mapped[str | None] = folded()

    __table_args__ = (
        partial_index(
            "ix_groups_two_factor_required_at",
            two_factor_required_at,
            where=two_factor_required_at.is_not(None),
        ),
        partial_index("uq_groups_owner_id", owner_id, unique=True, where=owner_id.is_not(None)),
        Index("uq_groups_path_lower", func.lower(path), unique=True),
        Index("uq_groups_path_key", path_key, unique=True),
        partial_index("ix_groups_deleted_at", deleted_at, where=deleted_at.is_not(None)),
    )


keep_folded(Group.path, Group.path_key)
keep_folded(Group.name, Group.name_key)


def _access_level() -> Mapped[str]:
    """Return the column of a part of a project: disabled, private or enabled."""
    return mapped_column(String(16), default="enabled", server_default="enabled")


class Project(Numbered):
    """A project, which alerts belong to."""

    __tablename__ = "projects"

    group_id: Mapped[int] = belongs_to("groups")
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
        partial_index("ix_projects_deleted_at", deleted_at, where=deleted_at.is_not(None)),
    )


keep_folded(Project.path, Project.path_key)
keep_folded(Project.name, Project.name_key)


class FormerPath(Numbered):
    """A path that a group or project had: its URLs still lead there, and nobody else gets it."""

    __tablename__ = "former_paths"

    path: Mapped[str] = mapped_column(String(1024))
    #: Folded: receivers look for it.
    path_key: Mapped[str] = mapped_column(Text)
    group_id: Mapped[int | None] = belongs_to("groups", index=True)
    project_id: Mapped[int | None] = belongs_to("projects", index=True)
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("uq_former_paths_path_key", path_key, unique=True),
        CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_place"),
    )


class Member(Numbered):
    """A user's direct role in a group (and all below it) or in a project."""

    __tablename__ = "members"

    user_id: Mapped[int] = belongs_to("users")
    group_id: Mapped[int | None] = belongs_to("groups")
    project_id: Mapped[int | None] = belongs_to("projects")
    #: Guest 10 … Owner 50.
    role: Mapped[int] = mapped_column(SmallInteger)
    created_at: Mapped[datetime]
    #: The first day (in UTC) on which the role is not given any more.
    expires_at: Mapped[date | None] = mapped_column(Date)
    #: It counts while `role` is the one that it is based on.
    member_role_id: Mapped[int | None] = mapped_column(
        ForeignKey("member_roles.id", name="fk_members_member_role_id"), index=True
    )

    __table_args__ = (
        UniqueConstraint("user_id", "group_id"),
        UniqueConstraint("user_id", "project_id"),
        CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_place"),
        # Only those that end: for the roles in force a planner would read the whole index.
        partial_index("ix_members_expires_at", expires_at, where=expires_at.is_not(None)),
        # The members of a group or project in the order of their list.
        Index("ix_members_group_id_user_id", "group_id", "user_id"),
        Index("ix_members_project_id_user_id", "project_id", "user_id"),
    )


class ProjectShare(Numbered):
    """A group whose members are members of a project, with this role at the most."""

    __tablename__ = "project_shares"

    project_id: Mapped[int] = belongs_to("projects")
    group_id: Mapped[int] = belongs_to("groups", index=True)
    role: Mapped[int] = mapped_column(SmallInteger)
    #: The first day (in UTC) on which it gives no role any more.
    expires_at: Mapped[date | None] = mapped_column(Date)
    created_at: Mapped[datetime]

    __table_args__ = (UniqueConstraint("project_id", "group_id"),)


class MemberRole(Numbered):
    """A custom role of the instance or of a group: a role and what it adds to it."""

    __tablename__ = "member_roles"

    #: NULL for a role of the instance. A role whose group is deleted becomes one.
    group_id: Mapped[int | None] = mapped_column(BigId)
    name: Mapped[str] = mapped_column(String(255))
    description: Mapped[str] = mapped_column(Text)
    #: Members with this custom role have this one: Guest 10 … Maintainer 40.
    base_role: Mapped[int] = mapped_column(SmallInteger)
    #: Names of `Ability` (domain/access/roles.py).
    abilities: Mapped[list[str]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    name_key: Mapped[str | None] = folded()

    __table_args__ = (UniqueConstraint("name_key"),)


keep_folded(MemberRole.name, MemberRole.name_key)


class Invitation(Numbered):
    """A role that is offered to an e-mail address, until a user who has it accepts."""

    __tablename__ = "invitations"

    group_id: Mapped[int | None] = belongs_to("groups")
    project_id: Mapped[int | None] = belongs_to("projects")
    email: Mapped[str] = mapped_column(String(255))
    #: It stands only while this user could still give the role.
    invited_by: Mapped[int] = belongs_to("users", index=True)
    role: Mapped[int] = mapped_column(SmallInteger)
    created_at: Mapped[datetime] = mapped_column(index=True)
    #: That of the membership: the first day on which the role is not given any more.
    expires_at: Mapped[date | None] = mapped_column(Date)
    email_key: Mapped[str | None] = folded()
    #: The authorization of the application that made it; it ends with that access.
    authorization_id: Mapped[int | None] = mapped_column(BigId)

    __table_args__ = (
        UniqueConstraint("group_id", "email_key"),
        UniqueConstraint("project_id", "email_key"),
        CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_place"),
    )


keep_folded(Invitation.email, Invitation.email_key)
