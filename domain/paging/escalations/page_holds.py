"""Finds holds on pages, which are checked before each attempt to send a page."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy.orm import Session

from domain.alerts.formats.base import ParserSettings
from domain.paging.escalations.policy_steps import format_mute_reason
from domain.paging.notifications.paging_settings import PageHold
from domain.paging.silences.active_mutes import find_full_mutes


def find_page_holds(
    projects: Mapping[int, int],
    /,
    *,
    moment: datetime,
    session: Session,
    parser_settings: ParserSettings,
) -> Mapping[int, PageHold]:
    """Return the holds that apply to all pages about alerts, by alert ID.

    `projects` maps alert IDs to project IDs.
    """
    mutes = find_full_mutes(
        projects, moment=moment, session=session, parser_settings=parser_settings
    )
    return {
        alert_id: PageHold(format_mute_reason(mute), mute.look_again_at)
        for alert_id, mute in mutes.items()
    }
