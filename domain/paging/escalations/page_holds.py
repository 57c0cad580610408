"""Finds the holds that are checked before each attempt to send a page."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy.orm import Session

from domain.alerts.formats.base import ParserSettings
from domain.paging.escalations.steps import format_mute_reason
from domain.paging.notifications.policy import PageHold
from domain.paging.silences.muting import find_mutes_of_every_page


def find_page_holds(
    projects: Mapping[int, int],
    /,
    *,
    moment: datetime,
    session: Session,
    parser_settings: ParserSettings,
) -> Mapping[int, PageHold]:
    """Return the holds that apply to all pages about alerts, by alert id.

    `projects` maps alert ids to project ids.
    """
    mutes = find_mutes_of_every_page(
        projects, moment=moment, session=session, parser_settings=parser_settings
    )
    return {
        alert_id: PageHold(format_mute_reason(mute), mute.look_again_at)
        for alert_id, mute in mutes.items()
    }
