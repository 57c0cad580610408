"""Incidents with their linked alerts and timelines, and the rules that open incidents."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    Index,
    LargeBinary,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
    false,
    true,
)
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BaseWithId, build_cascading_foreign_key, build_set_null_foreign_key


class IncidentCounter(Base):
    """The last incident number of a project, locked by transactions that change incidents."""

    __tablename__ = "incident_counters"

    project_id: Mapped[int] = build_cascading_foreign_key(
        "projects", primary_key=True, autoincrement=False
    )
    last_iid: Mapped[int] = mapped_column(default=0)


class IncidentRule(BaseWithId):
    """A rule that opens an incident for matching alerts of a project."""

    __tablename__ = "incident_rules"

    project_id: Mapped[int] = build_cascading_foreign_key("projects")
    name: Mapped[str] = mapped_column(String(255))
    #: Conditions in the format of `domain.alerts.matching.conditions`.
    conditions: Mapped[dict[str, Any]] = mapped_column(JSON)
    #: True if the incidents of this rule are closed when all of their alerts are resolved.
    closes_when_resolved: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: True if the rule also applies to alerts that a silence or maintenance window mutes.
    opens_when_silenced: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: True if the incidents of this rule suppress pages for the alerts that join them.
    quiets_alerts: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: True if the rule is active. An inactive rule opens no incidents.
    is_active: Mapped[bool] = mapped_column(default=True, server_default=true())
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    __table_args__ = (UniqueConstraint("project_id", "name"),)


class IncidentRuleResponder(BaseWithId):
    """A user or on-call schedule that a rule assigns to the incidents that it opens."""

    __tablename__ = "incident_rule_responders"

    rule_id: Mapped[int] = build_cascading_foreign_key("incident_rules", index=True)
    user_id: Mapped[int | None] = build_cascading_foreign_key("users", index=True)
    #: On-call schedule to assign. Both this column and the user are NULL if the schedule was
    #: deleted.
    schedule_id: Mapped[int | None] = build_set_null_foreign_key("on_call_schedules", index=True)


class PendingIncidentAlert(Base):
    """A muted alert that opens an incident once no silence or maintenance window matches it."""

    __tablename__ = "incident_waiting"

    alert_id: Mapped[int] = build_cascading_foreign_key(
        "alerts", primary_key=True, autoincrement=False
    )
    project_id: Mapped[int] = build_cascading_foreign_key("projects")

    __table_args__ = (Index("ix_incident_waiting_project_id_alert_id", "project_id", "alert_id"),)


class Incident(BaseWithId):
    """A problem that users work on, with the alerts that report it."""

    __tablename__ = "incidents"

    project_id: Mapped[int] = build_cascading_foreign_key("projects")
    #: Number within the project: 1, 2, 3 …
    iid: Mapped[int]
    title: Mapped[str] = mapped_column(String(255))
    #: Description in Markdown.
    description: Mapped[str] = mapped_column(Text)
    #: Severity as a number, from unknown 0 to critical 5.
    urgency: Mapped[int] = mapped_column(SmallInteger)
    #: Status: triggered, acknowledged or resolved.
    status: Mapped[str] = mapped_column(String(16))
    closes_when_resolved: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: True if the open alerts of the incident do not page while the incident is acknowledged.
    quiets_alerts: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: Rule that opened the incident. NULL if a user opened it, or if the rule was deleted.
    rule_id: Mapped[int | None] = build_set_null_foreign_key("incident_rules")
    author_id: Mapped[int | None] = build_set_null_foreign_key("users", index=True)
    #: Name of the author, which is kept when the account is deleted. Empty for rules and commands.
    author_name: Mapped[str] = mapped_column(String(255))
    #: Number of linked alerts.
    alerts: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    acknowledged_at: Mapped[datetime | None]
    resolved_at: Mapped[datetime | None]

    __table_args__ = (
        Index("uq_incidents_project_id_iid", "project_id", "iid", unique=True),
        # There is an index for each order of the list, with and without a status filter.
        Index("ix_incidents_newest", "project_id", "status", "id"),
        Index("ix_incidents_urgency", "project_id", "status", "urgency", "id"),
        Index("ix_incidents_project_id_id", "project_id", "id"),
        # This index finds the incidents that a rule has opened recently.
        Index("ix_incidents_rule_id_id", "rule_id", "id"),
    )


class IncidentAlert(Base):
    """An alert that is linked to an incident. An alert belongs to at most one open incident."""

    __tablename__ = "incident_alerts"

    incident_id: Mapped[int] = build_cascading_foreign_key(
        "incidents", primary_key=True, autoincrement=False
    )
    alert_id: Mapped[int] = build_cascading_foreign_key(
        "alerts", primary_key=True, autoincrement=False, index=True
    )


class IncidentFingerprint(Base):
    """A fingerprint of an open incident. New alerts with this fingerprint join the incident."""

    __tablename__ = "incident_fingerprints"

    project_id: Mapped[int] = build_cascading_foreign_key(
        "projects", primary_key=True, autoincrement=False
    )
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)
    incident_id: Mapped[int] = build_cascading_foreign_key("incidents", index=True)


class IncidentAssignee(Base):
    """A user who is responsible for an incident."""

    __tablename__ = "incident_assignees"

    incident_id: Mapped[int] = build_cascading_foreign_key(
        "incidents", primary_key=True, autoincrement=False
    )
    user_id: Mapped[int] = build_cascading_foreign_key(
        "users", primary_key=True, autoincrement=False, index=True
    )


class IncidentNote(BaseWithId):
    """An entry in an incident's timeline: a user's comment, or a change to the incident."""

    __tablename__ = "incident_notes"

    incident_id: Mapped[int] = build_cascading_foreign_key("incidents")
    user_id: Mapped[int | None] = build_set_null_foreign_key("users", index=True)
    #: Name of the user, which is kept when the account is deleted. Empty for rules and commands.
    user_name: Mapped[str] = mapped_column(String(255))
    #: Value of `domain.incidents.types.EntryKind`.
    kind: Mapped[str] = mapped_column(String(16))
    #: Comment in Markdown. Empty for changes.
    text: Mapped[str] = mapped_column(Text)
    #: Details of the change.
    details: Mapped[dict[str, Any]] = mapped_column(JSON)
    #: True if only members with at least the Reporter role can see the comment.
    is_internal: Mapped[bool] = mapped_column(default=False, server_default=false())
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    __table_args__ = (Index("ix_incident_notes_incident_id_id", "incident_id", "id"),)
