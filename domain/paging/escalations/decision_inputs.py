"""Data for decisions about escalations: the alerts, and the progress of previous escalations."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.core.clock import CLOCK_TOLERANCE
from domain.paging.escalations.policy_steps import (
    EscalationPlan,
    EscalationProgress,
    shift_escalation_progress,
)
from domain.paging.silences.flapping import AlertRecurrence, find_alert_recurrences
from domain.projects.views import Namespace
from models import Alert, Escalation, Project

_TRIGGERED = "triggered"


@dataclass(frozen=True, kw_only=True)
class PageableAlert:
    """The properties of an alert that escalations need."""

    id: int
    iid: int
    title: str
    project_id: int
    project_path: str
    is_critical: bool
    #: True if the alert requires paging, unless a silence or another hold applies.
    is_triggered: bool
    #: True if the project of the alert is archived, which holds pages back.
    is_archived: bool

    @property
    def project(self) -> Namespace:
        """The alert's project as a namespace."""
        return Namespace(project_id=self.project_id, path=self.project_path)


def find_pageable_alerts(
    alert_ids: Collection[int], *, session: Session
) -> Mapping[int, PageableAlert]:
    """Return the alerts with the given IDs, by ID.

    IDs without an alert are left out.
    """
    if not alert_ids:
        return {}
    rows = session.execute(
        select(
            Alert.id,
            Alert.iid,
            Alert.title,
            Alert.project_id,
            Alert.status,
            Alert.severity,
            Project.path,
            Project.deleted_at,
            Project.archived_at,
        )
        .join(Project, Project.id == Alert.project_id)
        .where(Alert.id.in_(alert_ids))
    )
    return {
        row.id: PageableAlert(
            id=row.id,
            iid=row.iid,
            title=row.title,
            project_id=row.project_id,
            project_path=row.path,
            is_critical=row.severity == 0,
            is_triggered=(row.status, row.deleted_at) == (_TRIGGERED, None),
            is_archived=row.archived_at is not None,
        )
        for row in rows
    }


@dataclass(frozen=True, kw_only=True)
class PreviousProgress:
    """The progress of a previous escalation, which a recurring alert resumes."""

    policy_id: int | None
    progress: EscalationProgress
    has_reached: bool
    #: Time between the end of the previous alert and the start of the new alert.
    calm: timedelta
    #: Time of the last page. None if nobody was paged.
    last_paged_at: datetime | None
    #: Earliest time at which the users who were paged before may be paged again.
    again_at: datetime
    #: Targets that were paged last in round-robin steps, by step number.
    turns: dict[str, Any] | None


def find_previous_progress(
    alerts: Mapping[int, int], *, session: Session, now: datetime
) -> Mapping[int, PreviousProgress]:
    """Return the progress that recurring alerts resume, by alert ID.

    `alerts` maps alert IDs to project IDs.
    """
    found = find_alert_recurrences(alerts, moment=now, session=session)
    before = {each.previous_id for each in found.values()}
    rows = session.scalars(select(Escalation).where(Escalation.alert_id.in_(before)))
    by_alert = {row.alert_id: row for row in rows}
    return {
        alert_id: _build_previous_progress(by_alert[each.previous_id], each, now=now)
        for alert_id, each in found.items()
        if each.previous_id in by_alert
    }


def _build_previous_progress(
    row: Escalation, back: AlertRecurrence, *, now: datetime
) -> PreviousProgress:
    # A clock that was ahead may have recorded the end of the previous escalation.
    ahead = compute_clock_lead(row, now)
    progress = shift_escalation_progress(get_progress(row), -ahead)
    held = (row.ended_at or now) - row.held_since if row.held_since else timedelta()
    last = row.last_paged_at
    if last is not None and last > now:
        last = min(last - ahead, now)
    again_at = last + back.between_repeats if last else now
    return PreviousProgress(
        policy_id=row.policy_id,
        progress=shift_escalation_progress(progress, back.time_since_end + max(held, timedelta())),
        has_reached=row.has_reached,
        calm=back.time_since_end,
        last_paged_at=last,
        again_at=min(max(again_at, now), now + back.between_repeats),
        turns=row.turns,
    )


def compute_clock_lead(row: Escalation, now: datetime) -> timedelta:
    """Return how far ahead the clock was when an escalation's times were recorded.

    Return zero if the clock was not ahead by more than the tolerance.
    """
    ahead = row.decided_at - now if row.decided_at else timedelta()
    return ahead if ahead > CLOCK_TOLERANCE else timedelta()


@dataclass(frozen=True, slots=True)
class NamedPlan:
    """An escalation plan, and the name of the policy that it belongs to."""

    name: str
    plan: EscalationPlan


@dataclass(frozen=True, kw_only=True)
class StartReasons:
    """Special reasons why escalations start, by alert ID.

    Escalations of new alerts need no special reason.
    """

    previous_progress: Mapping[int, PreviousProgress] = field(default_factory=dict)
    #: Alerts whose severity increased.
    severity_increased: Collection[int] = ()
    #: Previous escalations of alerts that a user escalated.
    escalated: Mapping[int, Escalation] = field(default_factory=dict)


def store_progress(row: Escalation, progress: EscalationProgress) -> None:
    """Store the progress of an escalation in its row."""
    row.round, row.step, row.round_began_at = progress.round, progress.step, progress.began_at


def get_progress(row: Escalation) -> EscalationProgress:
    """Return the progress of a stored escalation."""
    return EscalationProgress(row.round, row.step, row.round_began_at)
