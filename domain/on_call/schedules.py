"""Schedules of a project: create, change, list, find and delete them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.database.paging import LARGEST_ID, Listed, ListPart, fetch_part
from domain.errors import ConflictError, InvalidError, NotFoundError
from domain.on_call.people import people
from domain.on_call.plans import RotationPlan
from domain.on_call.reading import current_rotations
from domain.on_call.rotations import NewRotation, as_wanted, move_rotations, store_rotations
from domain.projects.views import Namespace
from domain.time_zones import check_zone
from models import OnCallSchedule
from models.folding import fold

LONGEST_NAME, LONGEST_DESCRIPTION = 100, 1000
#: How long past shifts can be told: overrides, swaps and former rotations are kept.
PAST_KEPT_FOR = timedelta(days=400)
#: Of a project.
MOST_SCHEDULES = 50


@dataclass(frozen=True, kw_only=True)
class NewSchedule:
    """What a schedule is created with."""

    name: str
    time_zone: str
    description: str = ""
    rotations: Sequence[NewRotation] = ()


@dataclass(frozen=True, kw_only=True)
class ScheduleEdit:
    """What changes in a schedule; None leaves a part as it is."""

    name: str | None = None
    time_zone: str | None = None
    description: str | None = None
    rotations: Sequence[NewRotation] | None = None


@dataclass(frozen=True, kw_only=True)
class ScheduleView:
    """A schedule with its present rotations, the lowest layer first."""

    id: int
    project_id: int
    name: str
    description: str
    time_zone: str
    created_at: datetime
    rotations: tuple[RotationPlan, ...]


#: What a list can be ordered by.
_ORDERS = {"id": OnCallSchedule.id, "name": OnCallSchedule.name_key}


def list_schedules(project_id: int, part: ListPart, *, session: Session) -> Listed[ScheduleView]:
    """Return a part of a project's schedules."""
    statement = select(OnCallSchedule).where(OnCallSchedule.project_id == project_id)
    found = fetch_part(statement, _ORDERS, part, session=session)
    views = _views([row[0] for row in found.items], session=session)
    return Listed(items=views, total=found.total, next_cursor=found.next_cursor)


def all_schedules(project_id: int, *, session: Session) -> tuple[ScheduleView, ...]:
    """Return all schedules of a project by name; there are at most MOST_SCHEDULES."""
    rows = session.scalars(
        select(OnCallSchedule)
        .where(OnCallSchedule.project_id == project_id)
        .order_by(OnCallSchedule.name_key, OnCallSchedule.id)
    ).all()
    return _views(rows, session=session)


def get_schedule(project_id: int, schedule_id: int, *, session: Session) -> ScheduleView:
    """Return a schedule of a project, or raise NotFoundError."""
    (view,) = _views([_get(project_id, schedule_id, session=session)], session=session)
    return view


def find_schedule(project_id: int, name: str, *, session: Session) -> ScheduleView | None:
    """Return the schedule with this name in any case, or None."""
    row = session.scalar(
        select(OnCallSchedule).where(
            OnCallSchedule.project_id == project_id,
            OnCallSchedule.name_key == fold(name.strip().replace("\x00", "\ufffd")),
        )
    )
    return _views([row], session=session)[0] if row else None


def names_of(schedule_ids: Sequence[int], *, session: Session) -> Mapping[int, str]:
    """Return the names of schedules by id; those that are gone are left out."""
    rows = session.execute(
        select(OnCallSchedule.id, OnCallSchedule.name).where(OnCallSchedule.id.in_(schedule_ids))
    )
    return dict(rows.all())


def _get(project_id: int, schedule_id: int, *, session: Session) -> OnCallSchedule:
    here = select(OnCallSchedule).where(
        OnCallSchedule.project_id == project_id, OnCallSchedule.id == schedule_id
    )
    row = session.scalar(here) if schedule_id <= LARGEST_ID else None
    if row is None:
        message = "On-call schedule not found in this project."
        raise NotFoundError(message)
    return row


def create_schedule(
    project: Namespace, new: NewSchedule, *, session: Session, now: datetime
) -> ScheduleView:
    """Store a schedule with its rotations; raise InvalidError, or ConflictError for its name."""
    project_id = _id_of(project)
    count = select(func.count()).where(OnCallSchedule.project_id == project_id)
    if (session.scalar(count) or 0) >= MOST_SCHEDULES:
        message = f"A project can have at most {MOST_SCHEDULES} on-call schedules."
        raise InvalidError(message, field="name")
    row = OnCallSchedule(
        project_id=project_id,
        name=_checked_name(new.name),
        description=_checked_description(new.description),
        time_zone=check_zone(new.time_zone),
        created_at=now,
    )
    _store(row, session=session)
    store_rotations(project, row, new.rotations, session=session, now=now)
    return get_schedule(project_id, row.id, session=session)


def change_schedule(
    project: Namespace, schedule_id: int, edit: ScheduleEdit, *, session: Session, now: datetime
) -> ScheduleView:
    """Change a schedule; a rotation that is as before goes on, and others begin anew.

    With another time zone, all rotations are handed over by its clock from now on.
    """
    project_id = _id_of(project)
    row = _locked(project_id, schedule_id, session=session)
    values = _values(edit)
    try:
        with session.begin_nested():
            for name, value in values.items():
                setattr(row, name, value)
            session.flush()
    except IntegrityError as error:
        raise _taken(values["name"]) from error
    if edit.rotations is not None:
        store_rotations(project, row, edit.rotations, session=session, now=now)
    move_rotations(project, row, session=session, now=now)
    return get_schedule(project_id, schedule_id, session=session)


def put_rotation(
    project: Namespace, schedule_id: int, wanted: NewRotation, *, session: Session, now: datetime
) -> ScheduleView:
    """Add a rotation, or put it in the place of the one that it replaces.

    Raises InvalidError, and ConflictError if that one was changed meanwhile.
    """
    return _with_rotation(project, schedule_id, wanted.replaces, wanted, session=session, now=now)


def remove_rotation(
    project: Namespace, schedule_id: int, rotation_id: int, *, session: Session, now: datetime
) -> ScheduleView:
    """End a rotation; its past shifts stay. Raises ConflictError if it was changed meanwhile."""
    return _with_rotation(project, schedule_id, rotation_id, None, session=session, now=now)


def _with_rotation(
    project: Namespace,
    schedule_id: int,
    rotation_id: int | None,
    wanted: NewRotation | None,
    *,
    session: Session,
    now: datetime,
) -> ScheduleView:
    row = _locked(_id_of(project), schedule_id, session=session)
    present = current_rotations([row.id], session=session)[row.id]
    if rotation_id is not None and rotation_id not in {each.id for each in present}:
        message = "This rotation was changed or removed in the meantime. Check it and try again."
        raise ConflictError(message, field="name")
    named = people((each for plan in present for each in plan.user_ids), session=session)
    others = [
        wanted
        if each.id == rotation_id
        else as_wanted(each, [named[user_id].username for user_id in each.user_ids])
        for each in present
    ]
    if rotation_id is None:
        others.append(wanted)
    kept = [each for each in others if each is not None]
    store_rotations(project, row, kept, session=session, now=now)
    return get_schedule(row.project_id, row.id, session=session)


def _locked(project_id: int, schedule_id: int, *, session: Session) -> OnCallSchedule:
    """Return a schedule whose row is locked: of changes at once, one waits for the other."""
    _get(project_id, schedule_id, session=session)
    return session.execute(
        select(OnCallSchedule)
        .where(OnCallSchedule.id == schedule_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).scalar_one()


def _values(edit: ScheduleEdit) -> dict[str, Any]:
    checks = {
        "name": (edit.name, _checked_name),
        "description": (edit.description, _checked_description),
        "time_zone": (edit.time_zone, check_zone),
    }
    return {name: check(given) for name, (given, check) in checks.items() if given is not None}


def delete_schedule(project_id: int, schedule_id: int, *, session: Session) -> ScheduleView:
    """Delete a schedule with all that belongs to it, and return it."""
    view = get_schedule(project_id, schedule_id, session=session)
    session.delete(_get(project_id, schedule_id, session=session))
    session.flush()
    return view


def _store(row: OnCallSchedule, *, session: Session) -> None:
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError as error:
        raise _taken(row.name) from error


def _taken(name: str) -> ConflictError:
    message = f"The project already has an on-call schedule named {name}."
    return ConflictError(message, field="name")


def _checked_name(name: str) -> str:
    kept = name.strip()
    if not kept or not kept.isprintable() or len(kept) > LONGEST_NAME:
        message = f"Enter a name of at most {LONGEST_NAME} visible characters, such as Primary."
        raise InvalidError(message, field="name")
    return kept


def _checked_description(text: str) -> str:
    if len(text) > LONGEST_DESCRIPTION or "\x00" in text:
        message = f"A description has at most {LONGEST_DESCRIPTION} characters."
        raise InvalidError(message, field="description")
    return text.strip()


def _id_of(project: Namespace) -> int:
    if project.project_id is None:
        message = "schedules belong to projects"
        raise TypeError(message)
    return project.project_id


def _views(rows: Sequence[OnCallSchedule], *, session: Session) -> tuple[ScheduleView, ...]:
    rotations = current_rotations([row.id for row in rows], session=session)
    return tuple(
        ScheduleView(
            id=row.id,
            project_id=row.project_id,
            name=row.name,
            description=row.description,
            time_zone=row.time_zone,
            created_at=row.created_at,
            rotations=tuple(rotations[row.id]),
        )
        for row in rows
    )
