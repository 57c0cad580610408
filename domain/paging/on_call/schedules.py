"""Stored schedules of projects and groups, with their rotations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from types import MappingProxyType

from sqlalchemy import select, update

from domain.access.actor import UnitOfWork
from domain.accounts.profiles import find_user_references
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.database.pagination import MAX_ID
from domain.core.errors import InvalidError, NotFoundError
from domain.core.time_zones import convert_to_local, get_zone
from domain.core.types.base import get_column_values
from domain.paging.on_call.eligible_users import check_can_be_on_call, find_user_ids
from domain.paging.on_call.schedule_plans import MAX_TURN_LENGTH, Cadence, RotationPlan
from domain.paging.on_call.schedule_queries import load_current_rotations, serialize_restriction
from domain.paging.on_call.types import (
    MAX_LAYER,
    MAX_ROTATIONS,
    MAX_SCHEDULE_NAME_LENGTH,
    NewRotation,
    OnCallRotation,
    OnCallSchedule,
)
from domain.projects.row_ownership import (
    build_owner_match_condition,
    build_web_url,
    find_owner_group_paths,
    is_owned_by,
    is_owned_by_self_or_ancestor,
)
from domain.projects.views import ProjectOrGroup
from models import OnCallRotation as RotationRow
from models import OnCallSchedule as ScheduleRow
from models import OnCallTurn
from models.case_folding import fold_text

#: Retention period of overrides, swaps and previous rotations, which past shifts depend on.
SCHEDULE_HISTORY_RETENTION = timedelta(days=400)
FIRST_START_DAY, LAST_START_DAY = date(2000, 1, 1), date(2099, 12, 31)
_ROTATIONS_FIELD = "rotations"
#: ID of a rotation that has not been stored yet.
_NEW_ROTATION_ID = 0
_DAY = timedelta(days=1)
_NO_REPLACEMENTS: Mapping[int, int] = MappingProxyType({})


def list_all_schedules(
    work: UnitOfWork, holder: ProjectOrGroup, *, with_groups_above: bool = False
) -> Sequence[OnCallSchedule]:
    """Return the schedules of a project or group, ordered by name.

    If `with_groups_above` is true, inherited schedules are included.
    """
    here = is_owned_by_self_or_ancestor(
        ScheduleRow, holder, with_groups_above=with_groups_above, session=work.session
    )
    rows = work.session.scalars(
        select(ScheduleRow).where(here).order_by(ScheduleRow.name_key, ScheduleRow.id)
    ).all()
    return build_schedules(work, holder, rows)


def get_schedule(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str
) -> OnCallSchedule:
    """Return a schedule by its ID or name.

    Raise NotFoundError if there is no such schedule.
    """
    return build_schedules(work, holder, [get_schedule_row(work, holder, schedule_id)])[0]


def find_schedule(work: UnitOfWork, holder: ProjectOrGroup, name: str) -> OnCallSchedule | None:
    """Return the schedule with the given name, or None.

    Names are not case-sensitive.
    """
    row = _find_schedule_row(work, holder, name)
    return build_schedules(work, holder, [row])[0] if row else None


def get_schedule_row(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str
) -> ScheduleRow:
    """Return the row of the schedule with the given ID or name.

    Names are not case-sensitive. Raise NotFoundError if there is no such schedule.
    """
    if isinstance(schedule_id, str):
        if (found := _find_schedule_row(work, holder, schedule_id)) is not None:
            return found
        if not (schedule_id.isascii() and schedule_id.isdecimal()):
            message = f"{holder.path} has no on-call schedule named {schedule_id[:100]}."
            raise NotFoundError(message)
    number = int(schedule_id)
    row = work.session.get(ScheduleRow, number) if number <= MAX_ID else None
    if row is None or not is_owned_by(row, holder):
        word = holder.namespace.resource_type
        raise NotFoundError(f"On-call schedule not found in this {word}.")
    return row


def lock_schedule_row(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str
) -> ScheduleRow:
    """Lock and return the row of a schedule, so that changes are serialized."""
    row = get_schedule_row(work, holder, schedule_id)
    work.session.refresh(row, with_for_update=True)
    return row


def _find_schedule_row(work: UnitOfWork, holder: ProjectOrGroup, name: str) -> ScheduleRow | None:
    found: ScheduleRow | None = work.session.scalar(
        select(ScheduleRow).where(
            build_owner_match_condition(ScheduleRow, holder),
            ScheduleRow.name_key == fold_text(replace_unstorable_characters(name).strip()),
        )
    )
    return found


def build_schedules(
    work: UnitOfWork, holder: ProjectOrGroup, rows: Sequence[ScheduleRow]
) -> Sequence[OnCallSchedule]:
    """Build schedules from database rows."""
    session, base_url = work.session, work.settings.base_url
    plans = load_current_rotations([row.id for row in rows], session=session)
    ids = (each for found in plans.values() for plan in found for each in plan.user_ids)
    named = find_user_references(ids, base_url=base_url, session=session)
    groups = find_owner_group_paths(rows, session=session)
    return tuple(
        OnCallSchedule(
            **get_column_values(row, OnCallSchedule),
            group=(group := groups.get(row.group_id)),
            rotations=tuple(
                OnCallRotation.from_plan(each, named) for each in plans.get(row.id, ())
            ),
            web_url=f"{_build_pages_url(group, holder, base_url)}/on_call/schedules/{row.id}",
        )
        for row in rows
    )


def _build_pages_url(group: str | None, holder: ProjectOrGroup, base_url: str) -> str:
    return build_web_url(holder, base_url) if group is None else f"{base_url}/groups/{group}/-"


@dataclass(frozen=True)
class _RotationChangeContext:
    """The context of a change to the rotations of a schedule."""

    work: UnitOfWork
    holder: ProjectOrGroup
    schedule: ScheduleRow

    def load_rotations_by_name(self) -> Mapping[str, RotationPlan]:
        """Return the current rotations by name."""
        found = load_current_rotations([self.schedule.id], session=self.work.session)
        return {each.name: each for each in found[self.schedule.id]}


def store_rotations(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    schedule: ScheduleRow,
    new_rotations: Sequence[NewRotation],
    instead: Mapping[int, int] = _NO_REPLACEMENTS,
) -> None:
    """Replace the rotations of a schedule.

    A rotation with the same name and definition continues. If its users, times or time zone change,
    the rotation ends now and a new version begins. `instead` maps the position of a new rotation in
    `new_rotations` to the ID of the current rotation that it replaces, regardless of names. Raise
    InvalidError if a rotation is invalid.
    """
    if len(new_rotations) > MAX_ROTATIONS:
        raise InvalidError(
            f"A schedule can have at most {MAX_ROTATIONS} rotations.", field=_ROTATIONS_FIELD
        )
    change = _RotationChangeContext(work, holder, schedule)
    before = change.load_rotations_by_name()
    by_id = {each.id: each for each in before.values()}
    layer, plans = 0, []
    for position, (name, each) in enumerate(_name_rotations(new_rotations).items()):
        layer = layer + 1 if each.layer is None else each.layer
        present = by_id.get(instead.get(position, _NEW_ROTATION_ID)) or before.get(name)
        plans.append(_build_plan(each, name, layer, present, change))
    kept = {each.id for each in plans}
    _end_rotations([each.id for each in before.values() if each.id not in kept], change)
    _start_rotations([each for each in plans if each.id == _NEW_ROTATION_ID], change)


def build_rotation(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    schedule: ScheduleRow,
    new_rotation: NewRotation,
    replaced_id: int | None,
) -> RotationPlan:
    """Return a rotation as it would be stored.

    Raise InvalidError if the rotation is invalid.
    """
    change = _RotationChangeContext(work, holder, schedule)
    before = change.load_rotations_by_name().values()
    replaced = next((each for each in before if each.id == replaced_id), None)
    return _build_plan(new_rotation, new_rotation.name, new_rotation.layer or 0, replaced, change)


def apply_time_zone(work: UnitOfWork, holder: ProjectOrGroup, schedule: ScheduleRow) -> None:
    """Change all rotations to the current time zone of the schedule."""
    change = _RotationChangeContext(work, holder, schedule)
    elsewhere = [
        each
        for each in change.load_rotations_by_name().values()
        if each.time_zone != schedule.time_zone
    ]
    _end_rotations([each.id for each in elsewhere], change)
    _start_rotations([replace(each, time_zone=schedule.time_zone) for each in elsewhere], change)


def _name_rotations(new_rotations: Sequence[NewRotation]) -> dict[str, NewRotation]:
    found: dict[str, NewRotation] = {}
    for number, each in enumerate(new_rotations, start=1):
        name = each.name.strip() or f"Rotation {number}"
        if len(name) > MAX_SCHEDULE_NAME_LENGTH or not name.isprintable():
            message = (
                f"The name of a rotation must be one line of at most {MAX_SCHEDULE_NAME_LENGTH} "
                "characters."
            )
            raise InvalidError(message, field=_ROTATIONS_FIELD)
        if name in found:
            message = f"There are two rotations named {name}. Give them different names."
            raise InvalidError(message, field=_ROTATIONS_FIELD)
        found[name] = each
    return found


def _build_plan(
    new_rotation: NewRotation,
    name: str,
    layer: int,
    previous_plan: RotationPlan | None,
    change: _RotationChangeContext,
) -> RotationPlan:
    """Return the requested rotation, or the current rotation if they are equal."""
    _check_rotation(new_rotation, layer)
    session, now = change.work.session, change.work.now
    user_ids = find_user_ids(new_rotation.users, field=_ROTATIONS_FIELD, session=session)
    plan = RotationPlan(
        id=_NEW_ROTATION_ID,
        name=name,
        layer=layer,
        cadence=new_rotation.cadence,
        starts_on=new_rotation.starts_on or _find_last_handoff_day(new_rotation.cadence, change),
        time_zone=change.schedule.time_zone,
        user_ids=user_ids,
        restrictions=tuple(each.restriction for each in new_rotation.restrictions),
        valid_from=now,
    )
    if previous_plan is not None and new_rotation.starts_on in (None, previous_plan.starts_on):
        plan = _continue_rotation(plan, previous_plan, now)
    elif new_rotation.starts_on is None:
        plan = replace(plan, first_turn=-plan.handoffs.get_turn_number_at(now) % len(user_ids))
    if (
        previous_plan is not None
        and replace(previous_plan, id=_NEW_ROTATION_ID, valid_from=now) == plan
    ):
        return previous_plan
    known = previous_plan.user_ids if previous_plan else ()
    new = {
        name: each
        for name, each in zip(new_rotation.users, user_ids, strict=True)
        if each not in known
    }
    check_can_be_on_call(change.work, change.holder, new, field=_ROTATIONS_FIELD)
    return plan


def _continue_rotation(
    plan: RotationPlan, previous_plan: RotationPlan, now: datetime
) -> RotationPlan:
    """Return a changed rotation in which the current user stays on call until the next handoff."""
    plan = replace(plan, starts_on=previous_plan.starts_on, first_turn=previous_plan.first_turn)
    if plan.user_ids == previous_plan.user_ids and plan.cadence == previous_plan.cadence:
        return plan
    if now < plan.handoffs.begins_at:
        return replace(plan, first_turn=0)
    present = previous_plan.get_user_id_for_turn(previous_plan.handoffs.get_turn_number_at(now))
    place = plan.user_ids.index(present) if present in plan.user_ids else 0
    number = plan.handoffs.get_turn_number_at(now)
    return replace(plan, first_turn=(place - number) % len(plan.user_ids))


def _find_last_handoff_day(cadence: Cadence, change: _RotationChangeContext) -> date:
    local = convert_to_local(change.work.now, get_zone(change.schedule.time_zone))
    return local.date() if local.time() >= cadence.at else local.date() - _DAY


def _check_rotation(new_rotation: NewRotation, layer: int) -> None:
    cadence, most = new_rotation.cadence, MAX_TURN_LENGTH[new_rotation.cadence.unit]
    if cadence.every > most:
        message = f"The length of a turn must be between 1 and {most} {cadence.unit}."
        raise InvalidError(message, field=_ROTATIONS_FIELD)
    if (
        new_rotation.starts_on is not None
        and not FIRST_START_DAY <= new_rotation.starts_on <= LAST_START_DAY
    ):
        message = f"The start of a rotation must be between {FIRST_START_DAY} and {LAST_START_DAY}."
        raise InvalidError(message, field=_ROTATIONS_FIELD)
    if layer > MAX_LAYER:
        message = f"The layer of a rotation must be between 0 and {MAX_LAYER}."
        raise InvalidError(message, field=_ROTATIONS_FIELD)


def _end_rotations(ids: Iterable[int], change: _RotationChangeContext) -> None:
    change.work.session.execute(
        update(RotationRow)
        .where(RotationRow.id.in_(list(ids)))
        .values(valid_until=change.work.now)
        .execution_options(synchronize_session="fetch")
    )


def _start_rotations(plans: Iterable[RotationPlan], change: _RotationChangeContext) -> None:
    for plan in plans:
        row = RotationRow(
            schedule_id=change.schedule.id,
            name=plan.name,
            layer=plan.layer,
            unit=plan.cadence.unit.value,
            every=plan.cadence.every,
            weekdays=list(plan.cadence.weekdays),
            handover_time=plan.cadence.at,
            starts_on=plan.starts_on,
            first_turn=plan.first_turn,
            restrictions=[serialize_restriction(each) for each in plan.restrictions],
            time_zone=plan.time_zone,
            valid_from=change.work.now,
        )
        change.work.session.add(row)
        change.work.session.flush()  # The flush assigns the ID.
        change.work.session.add_all(
            OnCallTurn(rotation_id=row.id, position=position, user_id=user_id)
            for position, user_id in enumerate(plan.user_ids)
        )
    change.work.session.flush()
