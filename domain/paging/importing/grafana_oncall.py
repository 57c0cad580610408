"""Reads exports from the public API of Grafana OnCall: one JSON object, or a file for each list.

https://grafana.com/docs/oncall/latest/oncall-api-reference/
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.core.errors import InvalidError
from domain.core.time_zones import get_zone, normalize_zone_name
from domain.paging.importing.export_files import (
    EntityValidator,
    ExportDocument,
    ExportEntity,
    ExportText,
    ExportTexts,
    list_items,
)
from domain.paging.importing.import_plan import (
    ImportedIntegration,
    ImportedOverride,
    ImportedPolicy,
    ImportedRotation,
    ImportedSchedule,
    ImportedStep,
    ImportedUser,
    ImportPlan,
    build_daily_restriction,
    build_week_restrictions,
    compute_offset_from_monday,
    merge_restrictions,
    resolve_time_zone,
)
from domain.paging.on_call.schedule_plans import EVERY_DAY, Cadence, Restriction, TurnUnit

#: Number of repetitions that a “repeat escalation” step stands for.
_REPEAT_COUNT = 5
_UNSUPPORTED_STEPS = {
    "notify_user_group": "Slack groups cannot be paged. Add users or a schedule to the step.",
    "notify_team_members": "The export does not list the members of teams. Add users or a schedule "
    "to the step.",
    "notify_whole_channel": "Create a channel in the project, and add it to the step.",
    "trigger_webhook": "Add a webhook to the project. It is called when an alert changes.",
    "trigger_action": "Add a webhook to the project. It is called when an alert changes.",
    "resolve": "Escalation policies cannot resolve alerts.",
    "declare_incident": "Add an incident rule to the project.",
    "notify_if_time_from_to": "Steps cannot depend on the time of day. Later steps page at any "
    "time.",
    "notify_if_num_alerts_in_window": "Steps cannot count alerts. Later steps page immediately.",
}
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_UNITS = {"hourly": TurnUnit.HOURS, "daily": TurnUnit.DAYS, "weekly": TurnUnit.WEEKS}
_HOUR, _DAY, _WEEK = timedelta(hours=1), timedelta(days=1), timedelta(weeks=1)
_UNIT_LENGTHS = {TurnUnit.HOURS: _HOUR, TurnUnit.DAYS: _DAY, TurnUnit.WEEKS: _WEEK}
_MAX_LAYER = 100
#: Duration in seconds. The limit is a century, which is longer than any shift.
_Seconds = Annotated[int, Field(ge=0, le=3_155_760_000)]
#: Names of the lists in an export, which are keys of the JSON object or file names.
_LIST_NAMES = (
    *("users", "teams", "schedules", "on_call_shifts", "escalation_chains"),
    *("escalation_policies", "integrations", "routes"),
)
_UNSUPPORTED_LISTS = {
    "webhooks": "Outgoing webhooks are not imported. Add webhooks to the project.",
    "actions": "Outgoing webhooks are not imported. Add webhooks to the project.",
    "personal_notification_rules": "Rules are not imported. Each user adds contacts.",
    "shift_swaps": "Swaps are not imported. Swap the shifts in the schedule.",
}
_ALERTMANAGER_TYPES = frozenset(
    {"alertmanager", "legacy_alertmanager", "grafana_alerting", "legacy_grafana_alerting"}
)
_TYPES_WITHOUT_HTTP = frozenset(
    {"inbound_email", "direct_paging", "manual", "maintenance", "slack"}
)


class _ExportedChain(ExportEntity):
    """An escalation chain in an export."""

    id: ExportText
    name: ExportText
    team_id: ExportText = ""


class _ExportedPolicy(ExportEntity):
    """A step of a chain, which the API calls an escalation policy."""

    escalation_chain_id: ExportText
    position: int = 0
    type: ExportText = ""
    duration: Annotated[int, Field(ge=0, le=31_557_600)] | None = None
    persons_to_notify: ExportTexts = ()
    persons_to_notify_next_each_time: ExportTexts = ()
    notify_on_call_from_schedule: ExportText = ""


@dataclass(kw_only=True)
class _ChainConverter:
    """Converts the steps of an escalation chain."""

    chain: _ExportedChain
    read: EntityValidator
    after: timedelta = timedelta()
    repeats: int = 0
    steps: list[ImportedStep] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def convert_step(self, number: int, step: _ExportedPolicy) -> None:
        """Convert a step, or record why the step is skipped."""
        if step.type == "wait":
            self.after += timedelta(seconds=max(step.duration or 0, 0))
        elif step.type == "repeat_escalation":
            self.repeats = _REPEAT_COUNT
        elif step.notify_on_call_from_schedule:
            schedules = (step.notify_on_call_from_schedule,)
            self.steps.append(ImportedStep(after=self.after, schedules=schedules))
        elif users := step.persons_to_notify or step.persons_to_notify_next_each_time:
            takes_turns = not step.persons_to_notify and len(users) > 1
            self.steps.append(ImportedStep(after=self.after, users=users, takes_turns=takes_turns))
        else:
            reason = _UNSUPPORTED_STEPS.get(
                step.type, f"Unsupported step: {step.type or '(none)'}."
            )
            name = f"{self.chain.name}: step {number}"
            self.read.skip_entity("step", name, reason)


def _convert_chain(
    chain: _ExportedChain, steps: Sequence[_ExportedPolicy], default: str, read: EntityValidator
) -> ImportedPolicy:
    """Convert an escalation chain to a policy with the supported steps."""
    walk = _ChainConverter(chain=chain, read=read)
    mine = [each for each in steps if each.escalation_chain_id == chain.id]
    for number, step in enumerate(sorted(mine, key=lambda each: each.position), 1):
        walk.convert_step(number, step)
    last = walk.steps[-1].after if walk.steps else timedelta()
    return ImportedPolicy(
        key=chain.id,
        team=chain.team_id or None,
        name=chain.name,
        steps=tuple(walk.steps),
        repeats=walk.repeats,
        # A wait at the end becomes the pause before the next round.
        pause=walk.after - last if walk.after > last else None,
        is_default=chain.id == default,
        notes=tuple(walk.notes),
    )


def _strip_utc_suffix(value: Any) -> Any:
    """Return a local time without `Z`, which the API appends to some local times."""
    return value.removesuffix("Z") if isinstance(value, str) else value


_WallTime = Annotated[
    datetime,
    BeforeValidator(_strip_utc_suffix),
    AfterValidator(lambda moment: moment.replace(tzinfo=None)),
]


class _ExportedShift(ExportEntity):
    """A recurring shift in an export, to which schedules refer by ID."""

    id: ExportText
    name: ExportText = ""
    type: ExportText
    time_zone: ExportText = ""
    level: int | None = 0
    start: _WallTime
    duration: _Seconds
    frequency: ExportText = ""
    interval: int | None = 1
    until: _WallTime | None = None
    week_start: ExportText = ""
    by_day: ExportTexts = ()
    by_month: tuple[int, ...] | None = None
    by_monthday: tuple[int, ...] | None = None
    users: ExportTexts = ()
    rolling_users: tuple[ExportTexts, ...] | None = None
    start_rotation_from_user_index: int | None = 0


class _ExportedSchedule(ExportEntity):
    """A schedule in an export, with the IDs of its shifts."""

    id: ExportText
    name: ExportText
    type: ExportText = ""
    team_id: ExportText = ""
    time_zone: ExportText = ""
    ical_url_primary: ExportText = ""
    ical_url_overrides: ExportText = ""
    shifts: ExportTexts = ()


def _convert_schedule(
    schedule: _ExportedSchedule,
    shifts: Mapping[str, _ExportedShift],
    read: EntityValidator,
    *,
    now: datetime,
) -> ImportedSchedule | None:
    """Convert a schedule and its supported shifts.

    Return None if the schedule is an external calendar.
    """
    if schedule.type == "ical":
        calendar = schedule.ical_url_primary[:200]
        reason = f"The schedule uses the calendar at {calendar}. Add its rotations manually."
        read.skip_entity("schedule", schedule.name, reason)
        return None
    notes = list[str]()
    if schedule.ical_url_overrides:
        notes.append("Its overrides are in a calendar. Add current and future overrides manually.")
    place = resolve_time_zone(schedule.time_zone, notes)
    rotations, overrides = list[ImportedRotation](), list[ImportedOverride]()
    for key in schedule.shifts:
        shift = shifts.get(key)
        try:
            if shift is not None and shift.type in {"single_event", "override"}:
                overrides += _convert_overrides(shift, place, now)
            else:
                rotations += _convert_rotations(shift, place, notes, now)
        except (InvalidError, ValueError, OverflowError) as error:
            name = f"{schedule.name}: {shift.name if shift and shift.name else key}"
            read.skip_entity("rotation", name, str(error))
    return ImportedSchedule(
        key=schedule.id,
        team=schedule.team_id or None,
        name=schedule.name,
        time_zone=place,
        rotations=tuple(rotations),
        overrides=tuple(overrides),
        notes=tuple(notes),
    )


def _get_local_start(shift: _ExportedShift, place: str) -> datetime:
    """Return the start of a shift in the time zone of its schedule."""
    if not shift.time_zone or shift.time_zone == place:
        return shift.start
    there = shift.start.replace(tzinfo=get_zone(normalize_zone_name(shift.time_zone)))
    return there.astimezone(get_zone(place)).replace(tzinfo=None)


def _convert_overrides(
    shift: _ExportedShift, place: str, now: datetime
) -> Iterator[ImportedOverride]:
    start = _get_local_start(shift, place).replace(tzinfo=get_zone(place))
    end = start.astimezone(UTC) + timedelta(seconds=shift.duration)
    users = [*shift.users, *(one for each in shift.rolling_users or () for one in each)]
    if end <= now:
        return
    if len(users) > 1:
        raise InvalidError("An override can have only one user. Add an override for each user.")
    for user in users:
        yield ImportedOverride(user=user, starts_at=start, ends_at=end)


def _convert_rotations(
    shift: _ExportedShift | None, place: str, notes: list[str], now: datetime
) -> Iterator[ImportedRotation]:
    """Yield a rotation for each user in a turn, since all users in a turn are on call together.

    Raise InvalidError if the shift is missing or unsupported.
    """
    if shift is None:
        raise InvalidError("The shift is missing. Include on_call_shifts in the export.")
    unit, length = _check_shift(shift, place, now)
    start, name = _get_local_start(shift, place), shift.name or shift.id
    if shift.time_zone and shift.time_zone != place:
        notes.append(f"{name} used the time zone {shift.time_zone}. Here, it uses {place}.")
    if shift.until is not None:
        notes.append(f"{name} ends on {shift.until:%Y-%m-%d}. Remove it manually on that day.")
    restrictions = _build_restrictions(shift, unit, start, length)
    turns = _list_turns(shift)
    for place_in_turn in range(max(map(len, turns))):
        yield ImportedRotation(
            name=name if not place_in_turn else f"{name} ({place_in_turn + 1})",
            users=tuple(turn[place_in_turn % len(turn)] for turn in turns),
            cadence=_build_cadence(shift, unit, start),
            layer=min(max(shift.level or 0, 0) + 1, _MAX_LAYER),
            starts_at=_get_first_turn_start(shift, unit, start),
            restrictions=restrictions,
        )


def _check_shift(shift: _ExportedShift, place: str, now: datetime) -> tuple[TurnUnit, timedelta]:
    """Return the unit of the turns and the length of a shift.

    Raise InvalidError if the shift has ended or is not supported.
    """
    unit, length = _UNITS.get(shift.frequency), timedelta(seconds=shift.duration)
    if shift.until is not None and shift.until.replace(tzinfo=get_zone(place)) <= now:
        raise InvalidError("The shift has ended.")
    if unit is None or shift.by_month or shift.by_monthday:
        raise InvalidError(
            "Shifts that recur monthly or not at all are not imported. Add rotations manually."
        )
    if length <= timedelta():
        raise InvalidError("The shift has no duration.")
    turn = _UNIT_LENGTHS[unit] * (shift.interval or 1)
    has_gaps = length < turn
    if has_gaps and (unit is TurnUnit.HOURS or (shift.interval or 1) > 1):
        raise InvalidError("Shifts with gaps of hours or weeks are not imported.")
    if length > turn:
        raise InvalidError("The turns of the shift overlap.")
    return unit, length


def _list_turns(shift: _ExportedShift) -> list[tuple[str, ...]]:
    if shift.type == "rolling_users":
        turns = [each for each in shift.rolling_users or () if each]
        first = (shift.start_rotation_from_user_index or 0) % max(len(turns), 1)
        turns = turns[first:] + turns[:first]
    else:
        turns = [shift.users] if shift.users else []
    if not turns:
        raise InvalidError("The shift has no users.")
    return turns


def _build_restrictions(
    shift: _ExportedShift, unit: TurnUnit, start: datetime, length: timedelta
) -> tuple[Restriction, ...]:
    days = tuple(_DAYS.index(each) for each in shift.by_day if each in _DAYS)
    if length == _UNIT_LENGTHS[unit] * (shift.interval or 1) and not days:
        return ()
    if unit is TurnUnit.WEEKS and not days:
        return merge_restrictions(
            build_week_restrictions(
                compute_offset_from_monday(start.weekday(), start.time()), length
            )
        )
    if length > _DAY:
        raise InvalidError(
            "Shifts on certain weekdays that last longer than a day are not imported. Add the "
            "rotation manually."
        )
    return (build_daily_restriction(start.time(), length, days or EVERY_DAY),)


def _build_cadence(shift: _ExportedShift, unit: TurnUnit, start: datetime) -> Cadence:
    at = start.time().replace(second=0, microsecond=0)
    return Cadence(
        unit=unit,
        every=shift.interval or 1,
        at=at if not _has_weekly_turns(shift, unit) else time(),
        weekdays=(_get_week_start(shift) if _has_weekly_turns(shift, unit) else start.weekday(),),
    )


def _has_weekly_turns(shift: _ExportedShift, unit: TurnUnit) -> bool:
    """Return whether turns follow calendar weeks, as they do for shifts on certain weekdays."""
    return unit is TurnUnit.WEEKS and bool(shift.by_day)


def _get_week_start(shift: _ExportedShift) -> int:
    return _DAYS.index(shift.week_start) if shift.week_start in _DAYS else _DAYS.index("SU")


def _get_first_turn_start(shift: _ExportedShift, unit: TurnUnit, start: datetime) -> datetime:
    """Return the start of the first turn.

    Turns that follow calendar weeks start at 00:00 on the first day of the week.
    """
    if not _has_weekly_turns(shift, unit):
        return start
    back = (start.weekday() - _get_week_start(shift)) % len(_DAYS)
    return (start - timedelta(days=back)).replace(hour=0, minute=0, second=0)


class _ExportedUser(ExportEntity):
    id: ExportText
    username: ExportText = ""
    email: ExportText = ""
    name: ExportText = ""


class _ExportedTeam(ExportEntity):
    id: ExportText
    name: ExportText


class _DefaultRoute(ExportEntity):
    escalation_chain_id: ExportText = ""


class _ExportedIntegration(ExportEntity):
    id: ExportText
    name: ExportText
    type: ExportText
    team_id: ExportText = ""
    default_route: _DefaultRoute | None = None


class _ExportedRoute(ExportEntity):
    integration_id: ExportText = ""
    routing_regex: ExportText = ""
    is_the_last_route: bool | None = False


def build_grafana_oncall_import_plan(
    documents: Iterable[ExportDocument], *, now: datetime
) -> ImportPlan:
    """Build an import plan from a Grafana OnCall export.

    Raise InvalidError if the documents are not a Grafana OnCall export.
    """
    read = EntityValidator()
    given = _group_entities_by_list(documents, read)
    schedules = read.validate_entities(_ExportedSchedule, given["schedules"], "schedule")
    shifts = {
        each.id: each
        for each in read.validate_entities(_ExportedShift, given["on_call_shifts"], "rotation")
    }
    chains = read.validate_entities(_ExportedChain, given["escalation_chains"], "policy")
    steps = read.validate_entities(_ExportedPolicy, given["escalation_policies"], "step")
    integrations = read.validate_entities(
        _ExportedIntegration, given["integrations"], "integration"
    )
    default = _find_default_chain(integrations, chains, read)
    _record_skipped_routes(
        read.validate_entities(_ExportedRoute, given["routes"], "route"), integrations, read
    )
    planned = [_convert_schedule(each, shifts, read, now=now) for each in schedules]
    sources = [_convert_integration(each, read) for each in integrations]
    return ImportPlan(
        teams={
            each.id: each.name
            for each in read.validate_entities(_ExportedTeam, given["teams"], "team")
        },
        users=[
            _convert_user(each)
            for each in read.validate_entities(_ExportedUser, given["users"], "user")
        ],
        schedules=[each for each in planned if each is not None],
        policies=[_convert_chain(each, steps, default, read) for each in chains],
        integrations=[each for each in sources if each is not None],
        left_out=read.skipped,
    )


def _group_entities_by_list(
    documents: Iterable[ExportDocument], read: EntityValidator
) -> Mapping[str, list[object]]:
    given: dict[str, list[object]] = {kind: [] for kind in _LIST_NAMES}
    for document in documents:
        for kind, value in _find_entity_lists(document):
            if kind in given:
                given[kind] += list_items(value)
            elif kind in _UNSUPPORTED_LISTS and (count := len(list_items(value))):
                read.skip_entity(kind, f"{count} in total", _UNSUPPORTED_LISTS[kind])
    if not any(given.values()):
        kinds = ", ".join(_LIST_NAMES)
        message = (
            "This is not a Grafana OnCall export. It must contain at least one of these lists: "
            f"{kinds}."
        )
        raise InvalidError(message)
    return given


def _find_entity_lists(document: ExportDocument) -> Iterable[tuple[str, object]]:
    """Yield the kind and value of each list in a document.

    If a file contains a single list, its kind is the file name without a number, such as `users`
    for `users-2.json`.
    """
    kind = document.stem.partition("-")[0]
    if kind in _LIST_NAMES or kind in _UNSUPPORTED_LISTS:
        yield kind, document.value
    elif isinstance(document.value, Mapping):
        yield from document.value.items()


def _convert_user(user: _ExportedUser) -> ImportedUser:
    username = user.username.partition("@")[0] or user.email.partition("@")[0]
    return ImportedUser(key=user.id, username=username, email=user.email, name=user.name)


def _find_default_chain(
    integrations: Sequence[_ExportedIntegration],
    chains: Sequence[_ExportedChain],
    read: EntityValidator,
) -> str:
    """Return the key of the chain that most integrations use.

    Record the integrations that use other chains.
    """
    names = {each.id: each.name for each in chains}
    leads = {
        each.name: each.default_route.escalation_chain_id
        for each in integrations
        if each.default_route and each.default_route.escalation_chain_id in names
    }
    if not leads:
        return ""
    ((default, _),) = Counter(leads.values()).most_common(1)
    for name, chain in leads.items():
        if chain != default:
            reason = (
                f"Its alerts went to {names[chain]}, but the default policy is {names[default]}. "
                "Add a route with conditions on severity, environment, service and labels."
            )
            read.skip_entity("route", name, reason)
    return default


def _record_skipped_routes(
    routes: Sequence[_ExportedRoute],
    integrations: Sequence[_ExportedIntegration],
    read: EntityValidator,
) -> None:
    names = {each.id: each.name for each in integrations}
    for route in routes:
        if not route.is_the_last_route:
            reason = (
                "Routes with regular expressions and templates are not imported. Add a route with "
                "conditions on severity, environment, service and labels."
            )
            name = f"{names.get(route.integration_id, '')}: {route.routing_regex}"
            read.skip_entity("route", name[:200], reason)


def _convert_integration(
    integration: _ExportedIntegration, read: EntityValidator
) -> ImportedIntegration | None:
    if integration.type in _TYPES_WITHOUT_HTTP:
        reason = f"The type {integration.type} does not receive alerts over HTTP."
        read.skip_entity("integration", integration.name, reason)
        return None
    is_metrics = integration.type in _ALERTMANAGER_TYPES
    note = f"Its type was {integration.type}. Add a mapping if its payload has other fields."
    return ImportedIntegration(
        team=integration.team_id or None,
        name=integration.name or integration.type,
        type=PROMETHEUS if is_metrics else HTTP,
        notes=() if is_metrics else (note,),
    )
