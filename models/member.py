"""Memberships, and invitations to become a member."""

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
)
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId
from models.folding import folded, keep_folded


class Member(Base):
    """A user's direct role in a group (and all below it) or in a project."""

    __tablename__ = "members"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    group_id: Mapped[int | None] = mapped_column(ForeignKey("groups.id", ondelete="CASCADE"))
    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
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
        Index(
            "ix_members_expires_at",
            expires_at,
            postgresql_where=expires_at.is_not(None),
            sqlite_where=expires_at.is_not(None),
        ),
        # The members of a group or project in the order of their list.
        Index("ix_members_group_id_user_id", "group_id", "user_id"),
        Index("ix_members_project_id_user_id", "project_id", "user_id"),
    )


class MemberRole(Base):
    """A custom role of the instance: a role and what it adds to it."""

    __tablename__ = "member_roles"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    description: Mapped[str] = mapped_column(Text)
    #: Members with this custom role have this one: Guest 10 … Maintainer 40.
    base_role: Mapped[int] = mapped_column(SmallInteger)
    #: Names of `Ability` (domain/accounts/abilities.py).
    abilities: Mapped[list[str]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    name_key: Mapped[str | None] = folded()

    __table_args__ = (UniqueConstraint("name_key"),)


keep_folded(MemberRole.name, MemberRole.name_key)


class Invitation(Base):
    """A role that is offered to an e-mail address, until a user who has it accepts."""

    __tablename__ = "invitations"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    group_id: Mapped[int | None] = mapped_column(ForeignKey("groups.id", ondelete="CASCADE"))
    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    email: Mapped[str] = mapped_column(String(255))
    #: It stands only while this user could still give the role.
    invited_by: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    role: Mapped[int] = mapped_column(SmallInteger)
    created_at: Mapped[datetime] = mapped_column(index=True)
    #: That of the membership: the first day on which the role is not given any more.
    expires_at: Mapped[date | None] = mapped_column(Date)
    email_key: Mapped[str | None] = folded()

    __table_args__ = (
        UniqueConstraint("group_id", "email_key"),
        UniqueConstraint("project_id", "email_key"),
        CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_place"),
    )


keep_folded(Invitation.email, Invitation.email_key)
