"""Tells users that somebody else changed their shifts, if the service sends mail."""

from datetime import datetime
from typing import Protocol, TypeVar

from sqlalchemy.orm import Session

from domain.on_call.notices import ShiftChange
from domain.on_call.schedules import ScheduleView
from domain.projects.views import ProjectView
from web.extensions import db
from web.services import now, settings

#: An override, a swap, or a schedule as it was before.
Changed = TypeVar("Changed")
_Taken_contra = TypeVar("_Taken_contra", contravariant=True)


class _Tell(Protocol[_Taken_contra]):
    """A function of `domain.on_call.notices`, which returns how many messages it queued."""

    def __call__(
        self, changed: _Taken_contra, change: ShiftChange, /, *, session: Session, now: datetime
    ) -> int: ...


def tell_users(
    tell: _Tell[Changed],
    changed: Changed,
    project: ProjectView,
    schedule: ScheduleView,
    *,
    by_id: int | None,
) -> None:
    """Queue the messages that a function of `domain.on_call.notices` writes."""
    current = settings()
    if not current.mail_url:
        return
    change = ShiftChange(
        schedule=schedule,
        project_path=project.path,
        by_id=by_id,
        base_url=current.base_url,
        instance_name=current.instance_name,
    )
    tell(changed, change, session=db.session(), now=now())
