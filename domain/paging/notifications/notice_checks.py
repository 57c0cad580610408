"""Checks whether a notice about a project may still be sent to a user.

Notices are checked before each attempt to send them. Since the text of a notice is fixed, the user,
the projects and the alerts in the notice are also stored. Notices without this data, such as
notices from older releases, are sent without checks.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.access.roles import Ability
from domain.alerts.formats.base import ParserSettings
from domain.paging.notifications.paging_settings import HoldFinder
from domain.projects.member_lists import find_users_with_ability
from domain.projects.views import Namespace
from models import Alert, Project, User

_log = logging.getLogger("gatebell.pages")


class NoticeBlockReason(NamedTuple):
    """The reason why a notice is not sent now."""

    reason: str
    #: True if the notice waits, since the reason may be temporary. Otherwise, the notice is
    #: canceled.
    waits: bool = False


def serialize_notice_subject(
    user_id: int, ability: Ability, project_ids: Sequence[int], *, alerts: Sequence[int] = ()
) -> dict[str, Any]:
    """Return the user, the projects and the alerts of a notice in their stored format.

    If `alerts` is not empty, the notice is sent only while one of the alerts needs attention.
    """
    about = {"user": user_id, "ability": ability.value, "projects": [*project_ids]}
    return {**about, "alerts": [*alerts]} if alerts else about


def find_notice_block_reason(
    about: Mapping[str, Any] | None,
    find_holds: HoldFinder,
    *,
    parser_settings: ParserSettings,
    session: Session,
    now: datetime,
) -> NoticeBlockReason | None:
    """Return the reason why a notice must not be sent now, or None."""
    if about is None:
        return None
    for project_id in about["projects"]:
        reason = _find_project_block_reason(project_id, about, session=session, now=now)
        if reason is not None:
            return NoticeBlockReason(reason)
    if "alerts" not in about:
        return None
    return _find_alert_block_reason(
        about["alerts"], find_holds, parser_settings=parser_settings, session=session, now=now
    )


def find_allowed_projects(
    about: Mapping[str, Any], *, session: Session, now: datetime
) -> Collection[int]:
    """Return the IDs of the projects in a notice, if the user may still be notified about them."""
    return {
        project_id
        for project_id in about["projects"]
        if _find_project_block_reason(project_id, about, session=session, now=now) is None
    }


def _find_project_block_reason(
    project_id: int, about: Mapping[str, Any], *, session: Session, now: datetime
) -> str | None:
    project = session.get(Project, project_id)
    if project is None or project.deleted_at is not None:
        return "the project was deleted"
    if project.archived_at is not None:
        return "the project is archived"
    place = Namespace(project_id=project_id, path=project.path)
    wanted, ability = User.id == about["user"], Ability(about["ability"])
    able = find_users_with_ability(wanted, ability, place, session=session, today=now.date())
    return None if able else "the recipient no longer has access to the project"


def _find_alert_block_reason(
    alerts: Sequence[int],
    find_holds: HoldFinder,
    *,
    parser_settings: ParserSettings,
    session: Session,
    now: datetime,
) -> NoticeBlockReason | None:
    """Return the reason why none of the alerts needs attention now, or None."""
    rows = session.execute(
        select(Alert.id, Alert.project_id).where(Alert.id.in_(alerts), Alert.status == "triggered")
    )
    triggered: dict[int, int] = dict(rows.all())
    if not triggered:
        return NoticeBlockReason("its alerts no longer need attention")
    try:
        held = find_holds(triggered, moment=now, session=session, parser_settings=parser_settings)
    except SQLAlchemyError:
        raise
    except Exception:  # noqa: BLE001 - each attempt would fail again
        # Other messages must not wait for a notice about a report that cannot be read.
        _log.exception(
            "Silence check failed; the notice to the maintainer will be sent anyway.",
            extra={"event": "notice.silence_check_failed"},
        )
        return None
    return (
        None
        if triggered.keys() - held.keys()
        else NoticeBlockReason("its alerts are muted", waits=True)
    )
