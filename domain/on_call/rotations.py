"""Checks and stores the rotations of a schedule.

A rotation that is changed ends, and a new one begins: past shifts stay as they were.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from sqlalchemy import update
from sqlalchemy.orm import Session

from domain.errors import InvalidError
from domain.on_call.handovers import MOST, Cadence, Unit
from domain.on_call.people import check_can_be_on_call, ids_of
from domain.on_call.plans import RotationPlan
from domain.on_call.reading import current_rotations, stored_restriction
from domain.on_call.restrictions import Restriction
from domain.projects.views import Namespace
from domain.time_zones import wall_time, zone
from models import OnCallRotation, OnCallSchedule, OnCallTurn

#: Of a schedule; of turns and restrictions of a rotation.
MOST_ROTATIONS, MOST_USERS, MOST_RESTRICTIONS = 20, 100, 20
LONGEST_NAME, HIGHEST_LAYER = 100, 100
FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2099, 12, 31)
_FIELD = "rotations"
#: The id of a rotation that is not stored yet.
_NEW = 0
_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class NewRotation:
    """A rotation as somebody wants it."""

    #: In the order of their turns; one can have several.
    usernames: Sequence[str]
    cadence: Cadence = field(default_factory=lambda: Cadence(unit=Unit.WEEKS))
    #: Empty: `Rotation 1` …
    name: str = ""
    #: None: above those before it.
    layer: int | None = None
    #: The day of the first hand-over, by the wall clock of the schedule; None: it has begun.
    starts_on: date | None = None
    restrictions: tuple[Restriction, ...] = ()
    #: The id of the present rotation that it takes the place of; None: that of the same name.
    replaces: int | None = None


def as_wanted(plan: RotationPlan, usernames: Sequence[str]) -> NewRotation:
    """Return a present rotation as one that is wanted as it is."""
    return NewRotation(
        name=plan.name,
        usernames=usernames,
        cadence=plan.cadence,
        layer=plan.layer,
        starts_on=plan.starts_on,
        restrictions=plan.restrictions,
        replaces=plan.id,
    )


class _Moment:
    """What a change of rotations is made with."""

    def __init__(
        self, project: Namespace, schedule: OnCallSchedule, *, session: Session, now: datetime
    ) -> None:
        self.project, self.schedule = project, schedule
        self.session, self.now = session, now

    def present(self) -> Mapping[str, RotationPlan]:
        """Return the rotations in force by name."""
        found = current_rotations([self.schedule.id], session=self.session)
        return {each.name: each for each in found[self.schedule.id]}


def store_rotations(
    project: Namespace,
    schedule: OnCallSchedule,
    wanted: Sequence[NewRotation],
    *,
    session: Session,
    now: datetime,
) -> None:
    """Make these the rotations of a schedule; raise InvalidError.

    One that is there already under the same name goes on; with other users, times or another zone
    it ends now, and another one begins.
    """
    if len(wanted) > MOST_ROTATIONS:
        message = f"A schedule can have at most {MOST_ROTATIONS} rotations."
        raise InvalidError(message, field=_FIELD)
    moment = _Moment(project, schedule, session=session, now=now)
    before = moment.present()
    by_id = {each.id: each for each in before.values()}
    layer, plans = 0, []
    for name, each in _named(wanted).items():
        layer = layer + 1 if each.layer is None else each.layer
        present = by_id.get(each.replaces or _NEW) or before.get(name)
        plans.append(_plan(replace(each, name=name, layer=layer), present, moment))
    kept = {each.id for each in plans}
    _end([each.id for each in before.values() if each.id not in kept], moment)
    _begin([each for each in plans if each.id == _NEW], moment)


def move_rotations(
    project: Namespace, schedule: OnCallSchedule, *, session: Session, now: datetime
) -> None:
    """Let all rotations go on in the time zone that the schedule has now."""
    moment = _Moment(project, schedule, session=session, now=now)
    elsewhere = [each for each in moment.present().values() if each.time_zone != schedule.time_zone]
    _end([each.id for each in elsewhere], moment)
    _begin([replace(each, time_zone=schedule.time_zone) for each in elsewhere], moment)


def _named(wanted: Sequence[NewRotation]) -> dict[str, NewRotation]:
    found: dict[str, NewRotation] = {}
    for number, each in enumerate(wanted, start=1):
        name = each.name.strip() or f"Rotation {number}"
        if len(name) > LONGEST_NAME or not name.isprintable():
            message = f"The name of a rotation has at most {LONGEST_NAME} characters."
            raise InvalidError(message, field=_FIELD)
        if name in found:
            message = f"There are two rotations named {name}. Give them different names."
            raise InvalidError(message, field=_FIELD)
        found[name] = each
    return found


def _plan(wanted: NewRotation, before: RotationPlan | None, moment: _Moment) -> RotationPlan:
    """Return a rotation as it is to be: the present one, if it is the same."""
    _check(wanted)
    user_ids = ids_of(wanted.usernames, field=_FIELD, session=moment.session)
    plan = RotationPlan(
        id=_NEW,
        name=wanted.name,
        layer=wanted.layer or 0,
        cadence=_settled(wanted.cadence),
        starts_on=wanted.starts_on or _day_of_last_handover(wanted.cadence, moment),
        time_zone=moment.schedule.time_zone,
        user_ids=user_ids,
        restrictions=wanted.restrictions,
        valid_from=moment.now,
    )
    if before is not None and wanted.starts_on in (None, before.starts_on):
        plan = _following(plan, before, moment.now)
    elif wanted.starts_on is None:
        plan = replace(plan, first_turn=-plan.handovers.number_at(moment.now) % len(user_ids))
    if before is not None and replace(before, id=_NEW, valid_from=moment.now) == plan:
        return before
    known = before.user_ids if before else ()
    new = {
        name: each
        for name, each in zip(wanted.usernames, user_ids, strict=True)
        if each not in known
    }
    check_can_be_on_call(
        moment.project, new, field=_FIELD, session=moment.session, today=moment.now.date()
    )
    return plan


def _settled(cadence: Cadence) -> Cadence:
    """Return a cadence without weekdays that mean nothing: equal ones are to be equal."""
    return cadence if cadence.unit is Unit.WEEKS else replace(cadence, weekdays=Cadence.weekdays)


def _following(plan: RotationPlan, before: RotationPlan, now: datetime) -> RotationPlan:
    """Return a changed rotation in which whoever is on call stays until the next hand-over."""
    plan = replace(plan, starts_on=before.starts_on, first_turn=before.first_turn)
    if plan.user_ids == before.user_ids and plan.cadence == before.cadence:
        return plan
    if now < plan.handovers.begins_at:
        return replace(plan, first_turn=0)
    present = before.user_at(before.handovers.number_at(now))
    place = plan.user_ids.index(present) if present in plan.user_ids else 0
    number = plan.handovers.number_at(now)
    return replace(plan, first_turn=(place - number) % len(plan.user_ids))


def _day_of_last_handover(cadence: Cadence, moment: _Moment) -> date:
    local = wall_time(moment.now, zone(moment.schedule.time_zone))
    return local.date() if local.time() >= cadence.at else local.date() - _DAY


def _check(wanted: NewRotation) -> None:
    cadence, most = wanted.cadence, MOST[wanted.cadence.unit]
    problems = (
        (not wanted.usernames, f"{wanted.name} needs at least one user."),
        (len(wanted.usernames) > MOST_USERS, f"A rotation has at most {MOST_USERS} turns."),
        (
            not 1 <= cadence.every <= most,
            f"A turn lasts from 1 to {most} {cadence.unit}.",
        ),
        (
            cadence.unit is Unit.WEEKS and not _are_weekdays(cadence.weekdays),
            "Choose the days on which a weekly rotation is handed over.",
        ),
        (
            wanted.starts_on is not None and not FIRST_DAY <= wanted.starts_on <= LAST_DAY,
            f"A rotation starts between {FIRST_DAY} and {LAST_DAY}.",
        ),
        (
            not 0 <= (wanted.layer or 0) <= HIGHEST_LAYER,
            f"A layer is a number from 0 to {HIGHEST_LAYER}.",
        ),
        (
            len(wanted.restrictions) > MOST_RESTRICTIONS
            or not all(_are_weekdays(each.weekdays) for each in wanted.restrictions),
            f"A rotation has at most {MOST_RESTRICTIONS} restrictions, each of some weekdays.",
        ),
    )
    for is_wrong, message in problems:
        if is_wrong:
            raise InvalidError(message, field=_FIELD)


def _are_weekdays(days: Sequence[int]) -> bool:
    return bool(days) and set(days) <= set(range(7)) and len(set(days)) == len(days)


def _end(ids: Iterable[int], moment: _Moment) -> None:
    moment.session.execute(
        update(OnCallRotation)
        .where(OnCallRotation.id.in_(list(ids)))
        .values(valid_until=moment.now)
        .execution_options(synchronize_session="fetch")
    )


def _begin(plans: Iterable[RotationPlan], moment: _Moment) -> None:
    for plan in plans:
        row = OnCallRotation(
            schedule_id=moment.schedule.id,
            name=plan.name,
            layer=plan.layer,
            unit=plan.cadence.unit.value,
            every=plan.cadence.every,
            weekdays=list(plan.cadence.weekdays),
            handover_time=plan.cadence.at,
            starts_on=plan.starts_on,
            first_turn=plan.first_turn,
            restrictions=[stored_restriction(each) for each in plan.restrictions],
            time_zone=plan.time_zone,
            valid_from=moment.now,
        )
        moment.session.add(row)
        moment.session.flush()  # to learn the id
        moment.session.add_all(
            OnCallTurn(rotation_id=row.id, position=position, user_id=user_id)
            for position, user_id in enumerate(plan.user_ids)
        )
    moment.session.flush()
