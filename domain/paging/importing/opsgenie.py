"""Reads backups made by opsgenie-configuration-backup, which have a folder for each entity kind.

https://github.com/opsgenie/opsgenie-configuration-backup
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator

from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.core.errors import InvalidError
from domain.core.time_zones import get_zone
from domain.paging.importing.export_files import (
    EntityValidator,
    ExportDocument,
    ExportEntity,
    ExportText,
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
    build_week_restrictions,
    compute_offset_from_monday,
    merge_restrictions,
    resolve_time_zone,
)
from domain.paging.on_call.schedule_plans import Cadence, Restriction, TurnUnit

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ROTATION_UNITS = {"hourly": TurnUnit.HOURS, "daily": TurnUnit.DAYS, "weekly": TurnUnit.WEEKS}
_WEEK = timedelta(weeks=1)
_DELAY_UNITS = {
    "minutes": timedelta(minutes=1),
    "hours": timedelta(hours=1),
    "days": timedelta(days=1),
    "": timedelta(minutes=1),
}
_MAX_REPEATS, _MAX_DELAY_AMOUNT = 9, 1_000_000
#: Kinds of entities, which are the names of folders in a backup.
_ENTITY_KINDS = ("users", "teams", "schedules", "escalations", "integrations")
#: Integration types that send alerts in the format of Alertmanager.
_ALERTMANAGER_TYPES = frozenset({"Prometheus", "GrafanaV2"})
#: Integration types that do not receive alerts over HTTP.
_TYPES_WITHOUT_HTTP = frozenset(
    {
        *("Email", "Slack", "SlackApp", "Jira", "JiraServiceDesk", "Webhook", "Zendesk", "Marid"),
        *("MSTeams", "MSTeamsV2", "Mattermost", "ServiceNowV2", "ServiceNowV3", "Oec", "Incoming"),
        *("HipChat", "HipChatV2", "HipChatAddOn", "Flowdock", "FlowdockV2", "Statuspage"),
    }
)


def _parse_timestamp(value: Any) -> Any:
    """Convert milliseconds since 1970 to a datetime.

    Other values, such as strings, are returned unchanged.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value / 1000, UTC) if abs(value) < 10**14 else value
    return value


_Timestamp = Annotated[datetime, BeforeValidator(_parse_timestamp)]


class _EntityReference(ExportEntity):
    """A reference to another entity, with its type, ID and name."""

    type: ExportText = ""
    id: ExportText = ""
    name: ExportText = ""
    username: ExportText = ""

    @property
    def display_name(self) -> str:
        """Name of the entity, or its ID if it has no name."""
        return self.username or self.name or self.id


class _WeekTime(ExportEntity):
    startDay: ExportText = ""
    endDay: ExportText = ""
    startHour: int = 0
    startMin: int = 0
    endHour: int = 0
    endMin: int = 0


class _TimeRestriction(ExportEntity):
    type: ExportText = ""
    restriction: _WeekTime | None = None
    restrictions: tuple[_WeekTime, ...] | None = None


class _ExportedRotation(ExportEntity):
    name: ExportText = ""
    type: ExportText
    length: int | None = 1
    startDate: _Timestamp
    endDate: _Timestamp | None = None
    participants: tuple[_EntityReference, ...] | None = None
    timeRestriction: _TimeRestriction | None = None


class _ExportedOverride(ExportEntity):
    user: _EntityReference | None = None
    startDate: _Timestamp
    endDate: _Timestamp
    rotations: tuple[_EntityReference, ...] | None = None


class _ExportedSchedule(ExportEntity):
    id: ExportText
    name: ExportText
    description: ExportText = ""
    timezone: ExportText = ""
    enabled: bool | None = True
    ownerTeam: _EntityReference | None = None
    rotations: tuple[_ExportedRotation, ...] | None = None


class _ScheduleFile(ExportEntity):
    """A file in the `schedules` folder."""

    schedule: _ExportedSchedule
    scheduleOverrideList: tuple[_ExportedOverride, ...] | None = None


def _convert_schedule(
    file: _ScheduleFile, read: EntityValidator, *, now: datetime
) -> ImportedSchedule:
    """Convert a schedule with its supported rotations and overrides."""
    found, notes = file.schedule, list[str]()
    place = resolve_time_zone(found.timezone, notes)
    rotations = []
    for number, each in enumerate(found.rotations or (), 1):
        name = each.name or f"Rotation {number}"
        try:
            rotations.append(_convert_rotation(each, name, place, notes, now))
        except (InvalidError, ValueError, OverflowError) as error:
            read.skip_entity("rotation", f"{found.name}: {name}", str(error))
    if found.enabled is False:
        notes.append("The schedule was disabled. Here, it is active.")
    return ImportedSchedule(
        key=found.id,
        team=found.ownerTeam.id if found.ownerTeam else None,
        name=found.name,
        description=found.description,
        time_zone=place,
        rotations=tuple(rotations),
        overrides=tuple(_convert_overrides(file, notes, now)),
        notes=tuple(notes),
    )


def _convert_rotation(
    rotation: _ExportedRotation, name: str, place: str, notes: list[str], now: datetime
) -> ImportedRotation:
    unit = _ROTATION_UNITS.get(rotation.type)
    if unit is None:
        raise InvalidError(f"Rotations of the type {rotation.type or '(none)'} are not supported.")
    if rotation.endDate is not None and _add_time_zone(rotation.endDate, place) <= now:
        raise InvalidError("The rotation has ended.")
    if rotation.endDate is not None:
        notes.append(f"{name} ends on {rotation.endDate:%Y-%m-%d}. Remove it manually on that day.")
    starts_at = (
        _add_time_zone(rotation.startDate, place).astimezone(get_zone(place)).replace(tzinfo=None)
    )
    at = starts_at.time().replace(second=0, microsecond=0)
    return ImportedRotation(
        name=name,
        users=_list_participants(rotation, name, notes),
        cadence=Cadence(
            unit=unit, every=rotation.length or 1, at=at, weekdays=(starts_at.weekday(),)
        ),
        # In Opsgenie, the users in all rotations of a schedule are on call at the same time.
        layer=1,
        starts_at=starts_at,
        restrictions=_convert_restrictions(rotation.timeRestriction),
    )


def _add_time_zone(moment: datetime, place: str) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(place))


def _list_participants(rotation: _ExportedRotation, name: str, notes: list[str]) -> tuple[str, ...]:
    users = []
    for each in rotation.participants or ():
        if each.type in {"user", ""}:
            users.append(each.id)
        elif each.type == "none":
            raise InvalidError("The rotation has turns without a user, which are not supported.")
        else:
            notes.append(f"{name}: the {each.type} {each.display_name} is left out.")
    if not users:
        raise InvalidError("The rotation has no users.")
    return tuple(users)


def _convert_restrictions(time_restriction: _TimeRestriction | None) -> tuple[Restriction, ...]:
    if time_restriction is None:
        return ()
    if time_restriction.type == "time-of-day" and time_restriction.restriction is not None:
        start, end = _parse_clock_times(time_restriction.restriction)
        return (Restriction(start=start, end=end),)
    return merge_restrictions(
        part for each in time_restriction.restrictions or () for part in _convert_week_time(each)
    )


def _convert_week_time(week_time: _WeekTime) -> tuple[Restriction, ...]:
    try:
        days = _DAYS.index(week_time.startDay.lower()), _DAYS.index(week_time.endDay.lower())
    except ValueError as error:
        raise InvalidError("A restriction has an invalid weekday.") from error
    start, end = (
        compute_offset_from_monday(day, at)
        for day, at in zip(days, _parse_clock_times(week_time), strict=True)
    )
    return build_week_restrictions(start, (end - start) % _WEEK or _WEEK)


def _parse_clock_times(week_time: _WeekTime) -> tuple[time, time]:
    try:
        return time(week_time.startHour % 24, week_time.startMin), time(
            week_time.endHour % 24, week_time.endMin
        )
    except ValueError as error:
        raise InvalidError("A restriction has an invalid time of day.") from error


def _convert_overrides(
    file: _ScheduleFile, notes: list[str], now: datetime
) -> list[ImportedOverride]:
    place, taken = resolve_time_zone(file.schedule.timezone, []), []
    for each in file.scheduleOverrideList or ():
        start, end = _add_time_zone(each.startDate, place), _add_time_zone(each.endDate, place)
        if end <= now:
            continue
        if each.user is None or each.user.type not in {"user", ""}:
            notes.append(
                f"The override from {start:%Y-%m-%d %H:%M} has no user, so it is left out."
            )
            continue
        if each.rotations:
            notes.append(f"The override from {start:%Y-%m-%d %H:%M} replaces all rotations here.")
        taken.append(ImportedOverride(user=each.user.id, starts_at=start, ends_at=end))
    return taken


class _ExportedDelay(ExportEntity):
    timeAmount: int = 0
    timeUnit: ExportText = ""


class _ExportedRule(ExportEntity):
    condition: ExportText = ""
    notifyType: ExportText = ""
    delay: _ExportedDelay | None = None
    recipient: _EntityReference | None = None


class _ExportedRepeat(ExportEntity):
    waitInterval: int | None = 0
    count: int | None = 0
    closeAlertAfterAll: bool | None = False


class _ExportedEscalation(ExportEntity):
    """A file in the `escalations` folder."""

    id: ExportText
    name: ExportText
    ownerTeam: _EntityReference | None = None
    rules: tuple[_ExportedRule, ...] | None = None
    repeat: _ExportedRepeat | None = None


def _convert_escalation(
    escalation: _ExportedEscalation,
    members: Mapping[str, tuple[str, ...]],
    defaults: frozenset[str],
    read: EntityValidator,
) -> ImportedPolicy:
    """Convert an escalation to a policy with the supported rules, ordered by delay."""
    steps, notes = [], list[str]()
    for number, rule in enumerate(escalation.rules or (), 1):
        try:
            steps.append(_convert_rule(rule, number, members, notes))
        except InvalidError as error:
            name = f"{escalation.name}: rule {number}"
            read.skip_entity("step", name, str(error))
    repeat = escalation.repeat or _ExportedRepeat()
    count = repeat.count or 0
    if count > _MAX_REPEATS:
        notes.append(f"The policy had {count} repeats. Here, it has {_MAX_REPEATS}.")
    if repeat.closeAlertAfterAll:
        notes.append("The policy closed the alert at the end. Here, the alert stays open.")
    wait = repeat.waitInterval or 0
    return ImportedPolicy(
        key=escalation.id,
        team=escalation.ownerTeam.id if escalation.ownerTeam else None,
        name=escalation.name,
        steps=tuple(sorted(steps, key=lambda each: each.after)),
        repeats=max(min(count, _MAX_REPEATS), 0),
        pause=timedelta(minutes=wait) if wait > 0 else None,
        is_default=escalation.id in defaults,
        notes=tuple(notes),
    )


def _convert_rule(
    rule: _ExportedRule, number: int, members: Mapping[str, tuple[str, ...]], notes: list[str]
) -> ImportedStep:
    recipient = rule.recipient or _EntityReference()
    if recipient.type not in {"user", "schedule", "team"}:
        kind = recipient.type or "(none)"
        raise InvalidError(f"Recipients of the type {kind} are not supported.")
    if rule.condition == "if-not-closed":
        notes.append(f"Rule {number} also paged for acknowledged alerts. Here, it does not.")
    after = _parse_delay(rule.delay)
    if recipient.type == "schedule":
        if rule.notifyType not in {"default", ""}:
            said = f"Rule {number} paged “{rule.notifyType}” of the schedule"
            notes.append(f"{said}. Here, the people on call are paged.")
        return ImportedStep(after=after, schedules=(recipient.id,))
    if recipient.type == "user":
        return ImportedStep(after=after, users=(recipient.id,))
    is_random = rule.notifyType == "random"
    notes.append(
        f"Rule {number} paged a random member of the team {recipient.display_name}. "
        "Here, the members in this backup take turns."
        if is_random
        else f"Rule {number} pages all members of the team {recipient.display_name} in this backup."
    )
    return ImportedStep(after=after, users=_find_members(recipient, members), takes_turns=is_random)


def _find_members(
    team: _EntityReference, members: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    if not members.get(team.id):
        raise InvalidError(f"The team {team.display_name} has no members in this backup.")
    return members[team.id]


def _parse_delay(delay: _ExportedDelay | None) -> timedelta:
    if delay is None:
        return timedelta()
    unit = _DELAY_UNITS.get(delay.timeUnit.lower())
    if unit is None or not 0 <= delay.timeAmount <= _MAX_DELAY_AMOUNT:
        raise InvalidError(f"The delay {delay.timeAmount} {delay.timeUnit} is invalid.")
    return delay.timeAmount * unit


_UNSUPPORTED_KINDS = {
    "policies": "Alert policies have no equivalent. Use routes, silences and incident rules.",
    "policiesV2": "Alert policies have no equivalent. Use routes, silences and incident rules.",
    "forwardings": "Forwarding rules are not imported. Add an override to the schedule.",
    "maintenance": "Maintenance is not imported. Create a maintenance window.",
    "heartbeats": "Heartbeats are not imported. Create them again, since their URLs change anyway.",
    "customUserRoles": "User roles are not imported.",
    "notifications": "Notification rules are not imported. Each user adds contacts.",
    "groups": "Groups are not imported.",
}


class _ExportedUser(ExportEntity):
    id: ExportText
    username: ExportText
    fullName: ExportText = ""
    blocked: bool = False


class _UserFile(ExportEntity):
    user: _ExportedUser


class _ExportedMember(ExportEntity):
    user: _EntityReference


class _ExportedTeam(ExportEntity):
    id: ExportText
    name: ExportText
    members: tuple[_ExportedMember, ...] | None = None


class _RoutingRule(ExportEntity):
    name: ExportText = ""
    isDefault: bool | None = False
    notify: _EntityReference | None = None


class _TeamFile(ExportEntity):
    team: _ExportedTeam
    teamRoutingRules: tuple[_RoutingRule, ...] | None = None


class _ExportedIntegration(ExportEntity):
    name: ExportText
    type: ExportText
    enabled: bool | None = True
    ownerTeam: _EntityReference | None = None


class _IntegrationFile(ExportEntity):
    integration: _ExportedIntegration


def build_opsgenie_import_plan(documents: Iterable[ExportDocument], *, now: datetime) -> ImportPlan:
    """Build an import plan from an Opsgenie backup.

    Raise InvalidError if the documents are not an Opsgenie backup.
    """
    read = EntityValidator()
    given = _group_entities_by_kind(documents, read)
    teams = read.validate_entities(_TeamFile, given["teams"], "team")
    schedules = read.validate_entities(_ScheduleFile, given["schedules"], "schedule")
    escalations = read.validate_entities(_ExportedEscalation, given["escalations"], "policy")
    integrations = read.validate_entities(_IntegrationFile, given["integrations"], "integration")
    members = {
        each.team.id: tuple(one.user.id for one in each.team.members or () if one.user.id)
        for each in teams
    }
    defaults = _find_default_escalations(teams, read)
    sources = [
        each for one in integrations if (each := _convert_integration(one.integration, read))
    ]
    return ImportPlan(
        teams={each.team.id: each.team.name for each in teams},
        users=_convert_users(read.validate_entities(_UserFile, given["users"], "user"), read),
        schedules=[_convert_schedule(each, read, now=now) for each in schedules],
        policies=[_convert_escalation(each, members, defaults, read) for each in escalations],
        integrations=sources,
        left_out=read.skipped,
    )


def _group_entities_by_kind(
    documents: Iterable[ExportDocument], read: EntityValidator
) -> Mapping[str, list[object]]:
    given: dict[str, list[object]] = {kind: [] for kind in _ENTITY_KINDS}
    others: dict[str, list[str]] = {}
    for document in documents:
        for kind, value in _find_entities(document):
            if kind in given:
                given[kind].append(value)
            elif kind in _UNSUPPORTED_KINDS:
                others.setdefault(kind, []).append(document.stem)
    if not any(given.values()):
        message = (
            "This is not an Opsgenie backup. It must contain JSON files in at least one of these "
            f"folders: {', '.join(_ENTITY_KINDS)}."
        )
        raise InvalidError(message)
    for kind, names in sorted(others.items()):
        for name in names:
            read.skip_entity(kind, name[:100], _UNSUPPORTED_KINDS[kind])
    return given


def _find_entities(document: ExportDocument) -> Iterable[tuple[str, object]]:
    """Yield the kind and value of each entity in a document.

    A document is a file in the folder of an entity kind, or a JSON object with several kinds.
    """
    if document.folder in _ENTITY_KINDS or document.folder in _UNSUPPORTED_KINDS:
        yield document.folder, document.value
    elif isinstance(document.value, Mapping):
        for kind, value in document.value.items():
            for each in list_items(value):
                yield kind, each


def _convert_users(user_files: Iterable[_UserFile], read: EntityValidator) -> list[ImportedUser]:
    users = []
    for user in (each.user for each in user_files):
        if user.blocked:
            reason = "The account is blocked."
            read.skip_entity("user", user.username, reason)
            continue
        name = user.username.partition("@")[0]
        email = user.username if "@" in user.username else ""
        users.append(ImportedUser(key=user.id, username=name, email=email, name=user.fullName))
    return users


def _find_default_escalations(teams: Sequence[_TeamFile], read: EntityValidator) -> frozenset[str]:
    """Return the keys of escalations that teams use for alerts without a matching rule."""
    found = set()
    for team in teams:
        for rule in team.teamRoutingRules or ():
            notify = rule.notify
            if rule.isDefault and notify and notify.type == "escalation":
                found.add(notify.id)
                continue
            reason = (
                "Routing rules are not imported. Add a route with conditions on severity, "
                "environment, service and labels."
            )
            if rule.isDefault:
                reason = "Its alerts go to no escalation. Add a policy, and make it the default."
            name = f"{team.team.name}: {rule.name or 'rule'}"
            read.skip_entity("route", name[:200], reason)
    return frozenset(found)


def _convert_integration(
    integration: _ExportedIntegration, read: EntityValidator
) -> ImportedIntegration | None:
    if integration.type in _TYPES_WITHOUT_HTTP:
        reason = (
            f"The type {integration.type} does not receive alerts over HTTP. To send messages "
            "elsewhere, add a channel or a webhook to the project."
        )
        read.skip_entity("integration", integration.name, reason)
        return None
    is_metrics = integration.type in _ALERTMANAGER_TYPES
    note = (
        f"Its type was {integration.type or 'API'}. Add a mapping if its payload has other fields."
    )
    return ImportedIntegration(
        team=integration.ownerTeam.id if integration.ownerTeam else None,
        name=integration.name or integration.type,
        type=PROMETHEUS if is_metrics else HTTP,
        is_active=integration.enabled is not False,
        notes=() if is_metrics else (note,),
    )
