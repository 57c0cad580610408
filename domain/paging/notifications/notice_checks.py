"""Checks before each attempt whether a notice about a project may still be sent to a user.

Notices have a fixed text, so they store their subject: the user, the projects and the alerts. A
notice without a subject, such as a notice from an older release, is sent without checks.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.access.roles import Ability
from domain.alerts.formats.base import Reading
from domain.paging.notifications.policy import FindHolds
from domain.projects.member_lists import able_people
from domain.projects.views import Namespace
from models import Alert, Project, User

_log = logging.getLogger("gatebell.pages")
_GONE = "the project was deleted"
_ARCHIVED = "the project is archived"
_NO_ACCESS = "the recipient no longer has access to the project"
_NOBODY_NEEDED = "its alerts no longer need attention"
_MUTED = "its alerts are muted"


class NotSent(NamedTuple):
    """The reason why a notice is not sent now."""

    reason: str
    #: True if the notice waits, because the reason may end; otherwise it is cancelled.
    waits: bool = False


def about_projects(
    user_id: int, ability: Ability, project_ids: Sequence[int], *, alerts: Sequence[int] = ()
) -> dict[str, Any]:
    """Return the subject of a notice in its stored format.

    With `alerts`, the notice is sent only while any of them needs attention.
    """
    about = {"user": user_id, "ability": ability.value, "projects": [*project_ids]}
    return {**about, "alerts": [*alerts]} if alerts else about


def why_not_sent(
    about: Mapping[str, Any] | None,
    find_holds: FindHolds,
    *,
    reading: Reading,
    session: Session,
    now: datetime,
) -> NotSent | None:
    """Return the reason why a notice may not be sent now, or None."""
    if about is None:
        return None
    for project_id in about["projects"]:
        reason = _why_not_about(project_id, about, session=session, now=now)
        if reason is not None:
            return NotSent(reason)
    if "alerts" not in about:
        return None
    return _why_not_now(about["alerts"], find_holds, reading=reading, session=session, now=now)


def may_be_told(about: Mapping[str, Any], *, session: Session, now: datetime) -> Collection[int]:
    """Return the projects of a notice that the user may still be notified about."""
    return {
        project_id
        for project_id in about["projects"]
        if _why_not_about(project_id, about, session=session, now=now) is None
    }


def _why_not_about(
    project_id: int, about: Mapping[str, Any], *, session: Session, now: datetime
) -> str | None:
    project = session.get(Project, project_id)
    if project is None or project.deleted_at is not None:
        return _GONE
    if project.archived_at is not None:
        return _ARCHIVED
    place = Namespace(project_id=project_id, path=project.path)
    wanted, ability = User.id == about["user"], Ability(about["ability"])
    able = able_people(wanted, ability, place, session=session, today=now.date())
    return None if able else _NO_ACCESS


def _why_not_now(
    alerts: Sequence[int],
    find_holds: FindHolds,
    *,
    reading: Reading,
    session: Session,
    now: datetime,
) -> NotSent | None:
    """Return the reason why none of the alerts needs attention now, or None."""
    rows = session.execute(
        select(Alert.id, Alert.project_id).where(Alert.id.in_(alerts), Alert.status == "triggered")
    )
    triggered: dict[int, int] = dict(rows.all())
    if not triggered:
        return NotSent(_NOBODY_NEEDED)
    try:
        held = find_holds(triggered, at=now, session=session, reading=reading)
    except SQLAlchemyError:
        raise
    except Exception:  # noqa: BLE001 - it would be raised again and again
        # Other messages must not wait for a notice about a report that cannot be read.
        _log.exception(
            "Silence check failed; the notice is sent.",
            extra={"event": "notice.silence_check_failed"},
        )
        return None
    return None if triggered.keys() - held.keys() else NotSent(_MUTED, waits=True)
