"""Holds on pages for the checks before each attempt to send."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy.orm import Session

from domain.alerts.formats.base import Reading
from domain.paging.escalations.steps import mute_words
from domain.paging.notifications.policy import PageHold
from domain.paging.silences.muting import fully_muted


def find_page_holds(
    projects: Mapping[int, int], /, *, at: datetime, session: Session, reading: Reading
) -> Mapping[int, PageHold]:
    """Return the holds on all pages of alerts, by alert id.

    `projects` maps the ids of alerts to the ids of their projects.
    """
    mutes = fully_muted(projects, at=at, session=session, reading=reading)
    return {
        alert_id: PageHold(mute_words(mute), mute.look_again_at) for alert_id, mute in mutes.items()
    }
