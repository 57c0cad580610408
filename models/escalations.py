"""Who is paged for an alert: policies with their steps, routes to them, running escalations."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, Integer, SmallInteger, String, Text, true
from sqlalchemy.orm import Mapped, mapped_column

from models.base import (
    Base,
    BigId,
    Numbered,
    OfNamespace,
    belongs_to,
    of_one_holder,
    partial_index,
    refers_to,
)
from models.folding import folded, keep_folded


class EscalationPolicy(OfNamespace, Numbered):
    """Steps that page people one after the other, until somebody acknowledges the alert."""

    __tablename__ = "escalation_policies"

    name: Mapped[str] = mapped_column(String(255))
    #: For alerts that no route is about; at most one of a project or group.
    is_default: Mapped[bool]
    #: In order of time: `{"after": seconds since the round began, "targets": [[kind, id], …]}`,
    #: with `"round_robin": true` if the targets take turns.
    steps: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    #: How often the steps are gone through again.
    repeats: Mapped[int] = mapped_column(SmallInteger)
    #: Seconds between the last step and the next round.
    repeat_pause: Mapped[int] = mapped_column(Integer)
    #: For how many seconds an acknowledgement holds; NULL: without an end.
    acknowledgement_timeout: Mapped[int | None] = mapped_column(Integer)
    #: Whether an alert that was acknowledged below critical is triggered again when it becomes
    #: critical.
    retrigger_when_critical: Mapped[bool] = mapped_column(default=True, server_default=true())
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    name_key: Mapped[str | None] = folded()

    __table_args__ = (
        Index("uq_escalation_policies_project_id_name_key", "project_id", "name_key", unique=True),
        Index("uq_escalation_policies_group_id_name_key", "group_id", "name_key", unique=True),
        of_one_holder(),
        # SQLite would give the id of a deleted policy to a new one, and its escalations with it.
        {"sqlite_autoincrement": True},
    )


keep_folded(EscalationPolicy.name, EscalationPolicy.name_key)


class EscalationTurn(Base):
    """Whose turn it was last at a step whose targets take turns."""

    __tablename__ = "escalation_turns"

    policy_id: Mapped[int] = belongs_to(
        "escalation_policies", primary_key=True, autoincrement=False
    )
    #: Its number, from 1.
    step: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    #: `[kind, id]`; NULL before the first turn.
    target: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))


class AlertRoute(OfNamespace, Numbered):
    """Which alerts of a project or group go to which policy; the first route that fits decides."""

    __tablename__ = "alert_routes"

    name: Mapped[str] = mapped_column(String(255))
    #: 1, 2, 3 … in the order in which routes are asked.
    position: Mapped[int] = mapped_column(Integer)
    #: As `domain.alerts.matching.conditions` writes them.
    conditions: Mapped[dict[str, Any]] = mapped_column(JSON)
    #: NULL: nobody is paged.
    policy_id: Mapped[int | None] = belongs_to("escalation_policies", index=True)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_alert_routes_project_id_position", "project_id", "position"),
        Index("ix_alert_routes_group_id_position", "group_id", "position"),
        of_one_holder(),
        {"sqlite_autoincrement": True},
    )


class Escalation(Base):
    """How far the paging for an alert has come; a row for each alert since it was last opened."""

    __tablename__ = "escalations"

    #: A part of the keys of pages, so that an alert that was reopened is paged for again.
    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    alert_id: Mapped[int] = belongs_to("alerts", unique=True)
    project_id: Mapped[int] = mapped_column(BigId)
    #: A `domain.paging.escalations.lifecycle.State`.
    state: Mapped[str] = mapped_column(String(16))
    #: NULL if nobody is to be paged. Neither has a foreign key: both may be deleted meanwhile.
    policy_id: Mapped[int | None] = mapped_column(BigId)
    #: NULL for the default policy, or none.
    route_id: Mapped[int | None] = mapped_column(BigId)
    #: The number of the round, from 1.
    round: Mapped[int] = mapped_column(SmallInteger)
    #: The index of the next step, from 0.
    #: So many as the policy has steps: all of the round were taken.
    step: Mapped[int] = mapped_column(SmallInteger)
    #: Delays of steps count from here.
    round_began_at: Mapped[datetime]
    #: When the next step is due, a mute is looked at again, or an acknowledgement or snooze ends;
    #: NULL when it ended.
    next_at: Mapped[datetime | None]
    #: Whether a message of this round was accepted by somebody's mail server or channel.
    has_reached: Mapped[bool]
    #: When the pages of the last step count as failed if none of them was accepted; NULL if none
    #: is waited for.
    judge_at: Mapped[datetime | None]
    #: When those who were paged before the alert opened again are paged again; NULL for never.
    again_at: Mapped[datetime | None]
    #: When somebody was last paged, also for earlier alerts of the same story.
    last_paged_at: Mapped[datetime | None]
    #: When something was last decided. Ahead of the clock, it tells that the clock was wrong.
    decided_at: Mapped[datetime | None]
    #: Since when, by what and until when it is held back.
    held_since: Mapped[datetime | None]
    held_by: Mapped[str | None] = mapped_column(Text)
    held_until: Mapped[datetime | None]
    #: Who acknowledged it last, to be asked first when that has run out. It has no foreign key: a
    #: deleted account keeps its id.
    answered_by_id: Mapped[int | None] = mapped_column(BigId)
    #: Whose turn it was at steps whose targets take turns: `{number of the step: [kind, id]}`.
    turns: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]

    __table_args__ = (
        partial_index("ix_escalations_next_at", "next_at", where="next_at IS NOT NULL"),
        # Those whose clock was ahead.
        partial_index("ix_escalations_decided_at", "decided_at", where="next_at IS NOT NULL"),
        # Those of a policy that is deleted or changed.
        partial_index("ix_escalations_policy_id", "policy_id", where="next_at IS NOT NULL"),
        # Those that are pruned.
        partial_index("ix_escalations_ended_at", "ended_at", where="ended_at IS NOT NULL"),
        {"sqlite_autoincrement": True},
    )


class PendingEscalation(Base):
    """An escalation that somebody asked for on a page, and can still undo for a few seconds."""

    __tablename__ = "pending_escalations"

    alert_id: Mapped[int] = belongs_to("alerts", primary_key=True, autoincrement=False)
    #: The status of the alert when the user asked: another one cancels the escalation.
    status: Mapped[str] = mapped_column(String(16))
    #: The user who asked. It has no foreign key: the row exists for seconds.
    asked_by_id: Mapped[int] = mapped_column(BigId)
    #: When the alert is escalated.
    due_at: Mapped[datetime] = mapped_column(index=True)


class EscalationPage(Numbered):
    """A person or channel that a step paged, or a person that somebody asked for."""

    __tablename__ = "escalation_pages"

    alert_id: Mapped[int] = belongs_to("alerts", index=True)
    #: NULL for a channel, and for a person whose account was deleted.
    user_id: Mapped[int | None] = refers_to("users", index=True)
    #: NULL for a person. It has no foreign key: the channel may be deleted.
    channel_id: Mapped[int | None] = mapped_column(BigId)
    #: The numbers of round and step, from 1. The step is 0 if a person was paged beside the steps.
    round: Mapped[int] = mapped_column(SmallInteger)
    step: Mapped[int] = mapped_column(SmallInteger)
    paged_at: Mapped[datetime] = mapped_column(index=True)
    #: The escalation, and the key of its page; NULL for pages of releases that kept neither.
    escalation_id: Mapped[int | None] = mapped_column(BigId, index=True)
    page_key: Mapped[str | None] = mapped_column(String(255))
    #: That of the alert, and what chose the page; NULL for pages of releases that kept neither.
    project_id: Mapped[int | None] = mapped_column(BigId)
    policy_id: Mapped[int | None] = mapped_column(BigId)
    route_id: Mapped[int | None] = mapped_column(BigId)
    #: What became of the page, a `domain.paging.notifications.states.PageState`; NULL until known.
    outcome: Mapped[str | None] = mapped_column(String(16))
    #: The user who asked for the person, 0 for the command line; NULL if nobody did. It has no
    #: foreign key: a deleted account keeps its id.
    asked_by_id: Mapped[int | None] = mapped_column(BigId)

    __table_args__ = (
        Index("uq_escalation_pages_page_key", "page_key", unique=True),
        # For reports.
        Index("ix_escalation_pages_project_id_paged_at", "project_id", "paged_at"),
    )
