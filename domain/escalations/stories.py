"""How far the paging for an alert had come when it ended and opened again.

Progress belongs to the story of a fingerprint: an outage that is over for half a minute every few
minutes is one outage, and the person of the second step is to be paged although each single alert
of it was too short. While it was over, no time passed for the steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.escalations.progress import Progress, shifted
from domain.silences.flapping import Return, returns
from models import Escalation


@dataclass(frozen=True, kw_only=True)
class Story:
    """What an alert that came back goes on with."""

    policy_id: int | None
    progress: Progress
    has_reached: bool
    #: For how long it was over.
    calm: timedelta
    #: None if nobody was paged.
    last_paged_at: datetime | None
    #: When those who were paged may be paged again.
    again_at: datetime


def find_stories(
    alerts: Mapping[int, int], *, session: Session, now: datetime
) -> Mapping[int, Story]:
    """Return what alerts that open now go on with, by id; `alerts` has their projects by id."""
    found = returns(alerts, at=now, session=session)
    before = {each.previous_id for each in found.values()}
    rows = session.scalars(select(Escalation).where(Escalation.alert_id.in_(before)))
    by_alert = {row.alert_id: row for row in rows}
    return {
        alert_id: _story(by_alert[each.previous_id], each, now=now)
        for alert_id, each in found.items()
        if each.previous_id in by_alert
    }


def _story(row: Escalation, back: Return, *, now: datetime) -> Story:
    progress = Progress(row.round, row.step, row.round_began_at)
    held = (row.ended_at or now) - row.held_since if row.held_since else timedelta()
    last = row.last_paged_at
    again_at = last + back.between_repeats if last else now
    return Story(
        policy_id=row.policy_id,
        progress=shifted(progress, back.calm + max(held, timedelta())),
        has_reached=row.has_reached,
        calm=back.calm,
        last_paged_at=last,
        again_at=min(max(again_at, now), now + back.between_repeats),
    )
