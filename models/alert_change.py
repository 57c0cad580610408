"""Changes of alerts, for the parts of the service that follow the alerts of a project."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, Integer, SmallInteger, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class AlertFollower(Base):
    """A part of the service that is told of each change of a project's alerts."""

    __tablename__ = "alert_followers"

    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    #: A `domain.alerts.following.followers.Follower`.
    follower: Mapped[str] = mapped_column(String(16), primary_key=True)


class AlertChange(Base):
    """A change of an alert that one follower has not handled yet; deleted when it has.

    A trigger on `alerts` adds one for each follower in the transaction of the change. There are no
    foreign keys: an alert may be deleted meanwhile.
    """

    __tablename__ = "alert_changes"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    follower: Mapped[str] = mapped_column(String(16))
    project_id: Mapped[int] = mapped_column(BigId)
    alert_id: Mapped[int] = mapped_column(BigId)
    #: A `domain.alerts.following.changes.ChangeKind`.
    kind: Mapped[str] = mapped_column(String(16))
    #: That of the alert, 0 for critical: more urgent changes are handled first. A change that
    #: makes an alert more urgent gives its severity to the earlier ones, which it waits for.
    severity: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    #: By the clock of the database.
    created_at: Mapped[datetime]
    tries: Mapped[int] = mapped_column(Integer, default=0)
    #: NULL: at once.
    next_try_at: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        Index(
            "ix_alert_changes_follower_severity_project_id_id",
            *("follower", "severity", "project_id", "id"),
        ),
        # For the question whether an earlier change of the same alert waits.
        Index("ix_alert_changes_follower_alert_id_id", "follower", "alert_id", "id"),
    )
