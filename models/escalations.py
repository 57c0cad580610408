"""Escalation policies, alert routes, and escalations of alerts."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, Integer, SmallInteger, String, Text, true
from sqlalchemy.orm import Mapped, mapped_column

from models.base import (
    Base,
    BaseWithId,
    BigId,
    NamespaceOwnedMixin,
    build_cascading_foreign_key,
    build_one_owner_constraint,
    build_partial_index,
    build_set_null_foreign_key,
)
from models.case_folding import build_folded_column, sync_folded_column


class EscalationPolicy(NamespaceOwnedMixin, BaseWithId):
    """A policy whose steps page users one after the other until someone acknowledges the alert."""

    __tablename__ = "escalation_policies"

    name: Mapped[str] = mapped_column(String(255))
    #: True if the policy applies to alerts that match no route. Each project or group has at most
    #: one default policy.
    is_default: Mapped[bool]
    #: Steps ordered by time: `{"after": seconds since the start of the round, "targets": [[kind,
    #: ID], …]}`, with `"round_robin": true` if the targets take turns.
    steps: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    #: Number of times that the steps are repeated.
    repeats: Mapped[int] = mapped_column(SmallInteger)
    #: Seconds between the last step and the next round.
    repeat_pause: Mapped[int] = mapped_column(Integer)
    #: Seconds after which an acknowledgement expires. NULL if it does not expire.
    acknowledgement_timeout: Mapped[int | None] = mapped_column(Integer)
    #: True if an acknowledged alert is triggered again when its severity becomes critical.
    retrigger_when_critical: Mapped[bool] = mapped_column(default=True, server_default=true())
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    name_key: Mapped[str | None] = build_folded_column()

    __table_args__ = (
        Index("uq_escalation_policies_project_id_name_key", "project_id", "name_key", unique=True),
        Index("uq_escalation_policies_group_id_name_key", "group_id", "name_key", unique=True),
        build_one_owner_constraint(),
        # SQLite would reuse the ID of a deleted policy, and a new policy would take over its
        # escalations.
        {"sqlite_autoincrement": True},
    )


sync_folded_column(EscalationPolicy.name, EscalationPolicy.name_key)


class EscalationTurn(Base):
    """The target that a round-robin step paged last."""

    __tablename__ = "escalation_turns"

    policy_id: Mapped[int] = build_cascading_foreign_key(
        "escalation_policies", primary_key=True, autoincrement=False
    )
    #: Number of the step, starting at 1.
    step: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    #: Target as `[kind, id]`. NULL if the step has not paged a target yet.
    target: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))


class AlertRoute(NamespaceOwnedMixin, BaseWithId):
    """A rule that assigns alerts to a policy. The first route that matches an alert applies."""

    __tablename__ = "alert_routes"

    name: Mapped[str] = mapped_column(String(255))
    #: Position in the order in which routes are checked, starting at 1.
    position: Mapped[int] = mapped_column(Integer)
    #: Conditions in the format of `domain.alerts.matching.conditions`.
    conditions: Mapped[dict[str, Any]] = mapped_column(JSON)
    #: Policy of the route. NULL if no one is paged.
    policy_id: Mapped[int | None] = build_cascading_foreign_key("escalation_policies", index=True)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_alert_routes_project_id_position", "project_id", "position"),
        Index("ix_alert_routes_group_id_position", "group_id", "position"),
        build_one_owner_constraint(),
        {"sqlite_autoincrement": True},
    )


class Escalation(Base):
    """The progress of paging for an alert since it was last opened."""

    __tablename__ = "escalations"

    #: Id, which is part of page keys. A reopened alert has a new ID, so it pages users again.
    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    alert_id: Mapped[int] = build_cascading_foreign_key("alerts", unique=True)
    project_id: Mapped[int] = mapped_column(BigId)
    #: Value of `domain.paging.escalations.state.EscalationState`.
    state: Mapped[str] = mapped_column(String(16))
    #: Policy of the escalation. NULL if no one is paged. There are no foreign keys to the policy
    #: and the route, because both may be deleted in the meantime.
    policy_id: Mapped[int | None] = mapped_column(BigId)
    #: Route that selected the policy. NULL for the default policy, or if there is no policy.
    route_id: Mapped[int | None] = mapped_column(BigId)
    #: Number of the round, starting at 1.
    round: Mapped[int] = mapped_column(SmallInteger)
    #: Index of the next step, starting at 0. After the last step of a round, it is the number of
    #: steps.
    step: Mapped[int] = mapped_column(SmallInteger)
    #: Start of the round, from which the delays of steps are counted.
    round_began_at: Mapped[datetime]
    #: Time of the next step, the next check of a mute, or the end of an acknowledgement or snooze.
    #: NULL if the escalation has ended.
    next_at: Mapped[datetime | None]
    #: True if a mail server or channel has accepted a message of this round.
    has_reached: Mapped[bool]
    #: Time at which the pages of the last step count as failed if no page was accepted. NULL if no
    #: page is pending.
    judge_at: Mapped[datetime | None]
    #: Time at which users who were paged before the alert reopened are paged again. NULL if they
    #: are not paged again.
    again_at: Mapped[datetime | None]
    #: Time of the last page, including pages for earlier alerts that this alert continues.
    last_paged_at: Mapped[datetime | None]
    #: Time of the last decision. A time in the future shows that the clock was ahead.
    decided_at: Mapped[datetime | None]
    #: Start, reason and end of the current hold. NULL if there is no hold, or if the end is
    #: unknown.
    held_since: Mapped[datetime | None]
    held_by: Mapped[str | None] = mapped_column(Text)
    held_until: Mapped[datetime | None]
    #: User who acknowledged the alert last, and is paged first when the acknowledgement expires.
    #: There is no foreign key, because the ID of a deleted account is kept.
    answered_by_id: Mapped[int | None] = mapped_column(BigId)
    #: Targets that round-robin steps paged: `{number of the step: [kind, id]}`.
    turns: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]

    __table_args__ = (
        build_partial_index("ix_escalations_next_at", "next_at", where="next_at IS NOT NULL"),
        # This index finds decisions that were made by a host whose clock was ahead.
        build_partial_index("ix_escalations_decided_at", "decided_at", where="next_at IS NOT NULL"),
        # This index finds the escalations of a policy that is deleted or changed.
        build_partial_index("ix_escalations_policy_id", "policy_id", where="next_at IS NOT NULL"),
        # This index finds the escalations to prune.
        build_partial_index("ix_escalations_ended_at", "ended_at", where="ended_at IS NOT NULL"),
        {"sqlite_autoincrement": True},
    )


class PendingEscalation(Base):
    """An escalation that a user requested on a web page and can undo for a few seconds."""

    __tablename__ = "pending_escalations"

    alert_id: Mapped[int] = build_cascading_foreign_key(
        "alerts", primary_key=True, autoincrement=False
    )
    #: Status of the alert at the time of the request. A different status cancels the escalation.
    status: Mapped[str] = mapped_column(String(16))
    #: User who requested the escalation. There is no foreign key, because rows exist only for
    #: seconds.
    asked_by_id: Mapped[int] = mapped_column(BigId)
    #: Time at which the alert is escalated.
    due_at: Mapped[datetime] = mapped_column(index=True)


class EscalationPage(BaseWithId):
    """A page that a step sent to a user or channel, or a manual page to a user."""

    __tablename__ = "escalation_pages"

    alert_id: Mapped[int] = build_cascading_foreign_key("alerts", index=True)
    #: User who was paged. NULL for a channel, and for a user whose account was deleted.
    user_id: Mapped[int | None] = build_set_null_foreign_key("users", index=True)
    #: Channel that was paged. NULL for a user. There is no foreign key, because the channel may be
    #: deleted.
    channel_id: Mapped[int | None] = mapped_column(BigId)
    #: Numbers of the round and step, starting at 1. The step is 0 for a manual page.
    round: Mapped[int] = mapped_column(SmallInteger)
    step: Mapped[int] = mapped_column(SmallInteger)
    paged_at: Mapped[datetime] = mapped_column(index=True)
    #: Escalation, and the key of its page. NULL for pages from older releases, which stored
    #: neither.
    escalation_id: Mapped[int | None] = mapped_column(BigId, index=True)
    page_key: Mapped[str | None] = mapped_column(String(255))
    #: Project of the alert, and the policy and route that caused the page. NULL for pages from
    #: older releases, which did not store them.
    project_id: Mapped[int | None] = mapped_column(BigId)
    policy_id: Mapped[int | None] = mapped_column(BigId)
    route_id: Mapped[int | None] = mapped_column(BigId)
    #: Result of the page, a `domain.paging.notifications.states.PageState`. NULL until it is known.
    outcome: Mapped[str | None] = mapped_column(String(16))
    #: User who requested a manual page, or 0 for the command line. NULL for pages from steps. There
    #: is no foreign key, because the ID of a deleted account is kept.
    asked_by_id: Mapped[int | None] = mapped_column(BigId)

    __table_args__ = (
        Index("uq_escalation_pages_page_key", "page_key", unique=True),
        # Reports use this index.
        Index("ix_escalation_pages_project_id_paged_at", "project_id", "paged_at"),
    )
