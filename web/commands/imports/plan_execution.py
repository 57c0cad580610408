"""Imports the objects in an import plan, or simulates the import and rolls it back."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from domain.access.roles import Role
from domain.accounts.administration import add_account, generate_password
from domain.accounts.names import slugify_name
from domain.accounts.passwords import HashCost
from domain.accounts.users import NewUser, UserView, find_user
from domain.alerts.integrations.actions import create_integration
from domain.alerts.integrations.integrations import list_integrations
from domain.alerts.integrations.types import NewIntegration
from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import DomainError
from domain.core.types.validation import validate_body
from domain.paging.escalations.actions import create_policy
from domain.paging.escalations.policies import find_pageable_users, list_own_policies
from domain.paging.escalations.policy_steps import (
    MAX_REPEAT_PAUSE,
    MAX_STEP_DELAY,
    MIN_REPEAT_PAUSE,
)
from domain.paging.escalations.types import EscalationStepBody, EscalationTargetBody, NewPolicy
from domain.paging.importing.import_plan import (
    ImportedIntegration,
    ImportedPolicy,
    ImportedRotation,
    ImportedSchedule,
    ImportedStep,
    ImportedUser,
    ImportPlan,
    SkippedEntity,
)
from domain.paging.on_call.actions import create_schedule
from domain.paging.on_call.overrides_and_swaps import create_override
from domain.paging.on_call.schedules import find_schedule, list_all_schedules
from domain.paging.on_call.types import (
    MAX_SCHEDULE_NAME_LENGTH,
    NewOverride,
    NewSchedule,
    OnCallSchedule,
    build_handoff_fields,
    build_restriction_fields,
)
from domain.projects.members import OPERATOR_VIEWER, add_member, record_member_added
from domain.projects.views import GroupView, ProjectOrGroup, ProjectView
from models.case_folding import fold_text
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work
from web.services import get_current_time, get_settings
from web.settings.policies.accounts import build_password_rules

_Created = TypeVar("_Created")
#: Cost of hashing passwords in a simulation. The passwords are never used.
_SIMULATION_HASH_COST = HashCost(memory_kib=64, passes=1)
#: Names of the lists in a report, by kind of object.
_REPORT_LIST_NAMES = {
    "user": "users",
    "schedule": "schedules",
    "policy": "policies",
    "integration": "integrations",
}
#: Report fields that an import sets, but a simulation does not.
_SECRET_FIELDS = ("password", "key", "url")
#: IDs of schedules by their keys in the export.
_ScheduleIds = dict[str, int]


class _ImportOutcome(StrEnum):
    """Result of importing an object."""

    CREATED = "created"
    #: Existing object that was left unchanged.
    EXISTS = "exists"
    LEFT_OUT = "left out"


@dataclass(kw_only=True)
class _ReportEntry:
    """An object in an export, with the result of its import."""

    kind: str
    name: str
    outcome: _ImportOutcome
    #: Project or group of the object.
    holder: ProjectOrGroup | None = None
    #: Differences from the export, or reasons for an omission.
    notes: list[str] = field(default_factory=list)
    #: Additional values, such as the URL of an integration.
    details: dict[str, Any] = field(default_factory=dict)

    def convert_to_json_value(self) -> dict[str, Any]:
        """Return the entry as a JSON object."""
        found: dict[str, Any] = {"name": self.name, "outcome": self.outcome.value}
        if self.holder is not None:
            found[self.holder.namespace.resource_type] = self.holder.path
        return {**found, **self.details, "notes": self.notes}


def _build_report(
    entries: Sequence[_ReportEntry], skipped_entities: Sequence[SkippedEntity], *, is_dry_run: bool
) -> dict[str, Any]:
    """Return the counts, entries and omitted objects of an import as a JSON object."""
    counts = Counter(each.outcome for each in entries)
    counts[_ImportOutcome.LEFT_OUT] += len(skipped_entities)
    return {
        "dry_run": is_dry_run,
        "summary": {each.value.replace(" ", "_"): counts[each] for each in _ImportOutcome},
        **{
            plural: [each.convert_to_json_value() for each in entries if each.kind == kind]
            for kind, plural in _REPORT_LIST_NAMES.items()
        },
        "left_out": [
            {"kind": each.kind, "name": each.name, "reason": each.reason}
            for each in skipped_entities
        ],
    }


@dataclass(frozen=True, kw_only=True)
class _ImportTargets:
    """Target projects and groups for teams, with defaults for all other objects."""

    #: Names of the export's teams by key.
    teams: Mapping[str, str]
    #: Projects and groups by lowercase team name.
    by_team: Mapping[str, ProjectOrGroup]
    otherwise: ProjectOrGroup | None
    #: Project for the integrations of objects that are imported into groups.
    integration_project: ProjectView | None

    def build_entry(
        self, kind: str, name: str, team: str | None
    ) -> tuple[_ReportEntry, ProjectOrGroup] | tuple[_ReportEntry, None]:
        """Return a report entry for a team's object, and the object's project or group.

        `team` is the key of the team. If the team has no project or group, the entry contains the
        reason.
        """
        holder = self.by_team.get(self.teams.get(team or "", "").lower(), self.otherwise)
        if holder is not None:
            entry = _ReportEntry(kind=kind, name=name, outcome=_ImportOutcome.EXISTS, holder=holder)
            return entry, holder
        owner = self.teams.get(team, team) if team else None
        reason = (
            f'Its team {owner} has no project or group. Use `--team "{owner}=PATH"` or '
            "`--into PATH`."
            if owner
            else "It belongs to no team. Use `--into PATH`."
        )
        return _ReportEntry(
            kind=kind, name=name, outcome=_ImportOutcome.LEFT_OUT, notes=[reason]
        ), None


def _create_or_note_error(entry: _ReportEntry, make: Callable[[], _Created]) -> _Created | None:
    """Create an object and return it, or add the error to the entry and return None."""
    try:
        with db.session().begin_nested():
            made = make()
    except DomainError as error:
        entry.outcome = _ImportOutcome.LEFT_OUT
        entry.notes.append(str(error))
        return None
    entry.outcome = _ImportOutcome.CREATED
    return made


def _import_integrations(
    imported_integrations: Iterable[ImportedIntegration], places: _ImportTargets
) -> list[_ReportEntry]:
    """Create the missing integrations and return the report entries for all integrations.

    The entry of a new integration contains its URL and key for senders.
    """
    entries = []
    for integration in imported_integrations:
        entry, holder = places.build_entry("integration", integration.name, integration.team)
        entries.append(entry)
        if holder is None:
            continue
        project = places.integration_project if isinstance(holder, GroupView) else holder
        if project is None:
            entry.outcome = _ImportOutcome.LEFT_OUT
            entry.notes.append("Groups have no integrations. Use `--integrations GROUP/PROJECT`.")
            continue
        entry.holder = project
        _import_integration(integration, project, entry)
    return entries


def _import_integration(
    integration: ImportedIntegration, project: ProjectView, entry: _ReportEntry
) -> None:
    name, kind = integration.name.strip(), integration.type.name
    if fold_text(name) in {
        fold_text(each.name) for each in list_integrations(get_unit_of_work(), project)
    }:
        return
    given = {"type": kind, "name": name, "active": integration.is_active}
    made = _create_or_note_error(
        entry,
        lambda: create_integration(
            get_unit_of_work(), project, validate_body(NewIntegration, given)
        ),
    )
    if made is not None:
        entry.notes += integration.notes
        entry.details = {"type": kind, "url": made.url, "key": made.key}


@dataclass(frozen=True, kw_only=True)
class UserOptions:
    """Options for users in an export who have no account or are not members."""

    #: `True` to create missing accounts and add them as members.
    creates_users: bool = False
    #: `True` to add existing accounts as members.
    adds_members: bool = False
    #: `True` if all changes are rolled back at the end.
    is_trial: bool = False


@dataclass(kw_only=True)
class _UserAccounts:
    """Accounts and report entries for the users in an export, by user key."""

    options: UserOptions
    entries: list[_ReportEntry] = field(default_factory=list)
    _accounts: dict[str, UserView] = field(default_factory=dict)
    _entries: dict[str, _ReportEntry] = field(default_factory=dict)
    _created: set[int] = field(default_factory=set)

    def find_or_create_accounts(self, users: Sequence[ImportedUser]) -> None:
        """Find each user's account by email address or username, or create a missing account.

        Accounts are created only if the options allow it.
        """
        for user in users:
            entry = _ReportEntry(
                kind="user", name=user.username or user.email, outcome=_ImportOutcome.EXISTS
            )
            account = self._find_or_create_account(user, entry)
            if account is not None:
                self._accounts[user.key] = account
                entry.details = {"username": account.username, **entry.details}
            self._entries[user.key] = entry
            self.entries.append(entry)

    def _find_or_create_account(self, user: ImportedUser, entry: _ReportEntry) -> UserView | None:
        session = db.session()
        by_email = find_user(user.email, session=session) if user.email else None
        if by_email is not None:
            return by_email
        by_name = find_user(user.username, session=session) if user.username else None
        if by_name is not None:
            if user.email:
                entry.notes.append(
                    f"Found by username. The email address of the account is not {user.email}."
                )
            return by_name
        if self.options.creates_users:
            return self._create_account(user, entry)
        entry.outcome = _ImportOutcome.LEFT_OUT
        entry.notes.append("No account has this email address. Use `--create-users`.")
        return None

    def _create_account(self, user: ImportedUser, entry: _ReportEntry) -> UserView | None:
        username = slugify_name(user.username)
        password = generate_password(username)
        new = NewUser(username=username, email=user.email, name=user.name[:200], password=password)
        session = db.session()
        rules = build_password_rules(get_settings())
        if self.options.is_trial:
            rules = replace(rules, cost=_SIMULATION_HASH_COST)
        else:
            commit_to_release_locks(session)  # hashing a password is slow
        try:
            made = add_account(get_unit_of_work(), new, rules)
        except (DomainError, ValueError) as error:
            entry.outcome = _ImportOutcome.LEFT_OUT
            entry.notes.append(str(error))
            return None
        entry.outcome = _ImportOutcome.CREATED
        entry.details["password"] = password
        self._created.add(made.id)
        return made

    def find_pageable_accounts(
        self, keys: Sequence[str], holder: ProjectOrGroup, notes: list[str]
    ) -> list[UserView]:
        """Return the users who can be paged in a project or group.

        A note is added to `notes` for every other user. Users become members if the options allow
        it.
        """
        found = []
        for key in keys:
            account = self._accounts.get(key)
            if account is None:
                entry = self._entries.get(key)
                notes.append(f"{entry.name if entry else key} has no account.")
            elif self._can_be_paged(account, holder) or self._add_member(key, account, holder):
                found.append(account)
            else:
                notes.append(
                    f"{account.username} does not have the Developer role in {holder.path}."
                )
        return found

    def _can_be_paged(self, account: UserView, holder: ProjectOrGroup) -> bool:
        return account.id in find_pageable_users(
            holder.namespace, [account.id], session=db.session(), today=get_current_time().date()
        )

    def _add_member(self, key: str, account: UserView, holder: ProjectOrGroup) -> bool:
        may = self.options.adds_members or account.id in self._created
        if not may:
            return False
        session, place = db.session(), holder.namespace
        try:
            with session.begin_nested():
                member = add_member(
                    place,
                    account.username,
                    Role.DEVELOPER,
                    viewer=OPERATOR_VIEWER,
                    session=session,
                    now=get_current_time(),
                )
        except DomainError as error:
            self._entries[key].notes.append(str(error))
            return False
        record_member_added(get_unit_of_work(), place, member, Role.DEVELOPER)
        self._entries[key].notes.append(f"Added to {holder.path} as a Developer.")
        return self._can_be_paged(account, holder)


def _import_schedules(
    imported_schedules: Iterable[ImportedSchedule], people: _UserAccounts, places: _ImportTargets
) -> tuple[list[_ReportEntry], _ScheduleIds]:
    """Create the missing schedules, and return the report entries and IDs of all schedules."""
    entries, ids = list[_ReportEntry](), _ScheduleIds()
    for schedule in imported_schedules:
        entry, holder = places.build_entry("schedule", schedule.name, schedule.team)
        entries.append(entry)
        if holder is None:
            continue
        view = find_schedule(get_unit_of_work(), holder, schedule.name)
        view = view or _create_schedule(schedule, holder, people, entry)
        if view is not None:
            ids[schedule.key] = view.id
    return entries, ids


def _create_schedule(
    schedule: ImportedSchedule, holder: ProjectOrGroup, people: _UserAccounts, entry: _ReportEntry
) -> OnCallSchedule | None:
    entry.notes += schedule.notes
    rotations = _build_rotations(schedule.rotations, holder, people, entry)
    given = {
        "name": schedule.name,
        "time_zone": schedule.time_zone,
        "description": schedule.description,
        "rotations": rotations,
    }
    made = _create_or_note_error(
        entry,
        lambda: create_schedule(get_unit_of_work(), holder, validate_body(NewSchedule, given)),
    )
    if made is not None:
        if not rotations:
            entry.notes.append(
                "The schedule has no rotations, so nobody is on call. Add a rotation."
            )
        _create_overrides(schedule, made, holder, people, entry)
    return made


def _build_rotations(
    imported_rotations: Iterable[ImportedRotation],
    holder: ProjectOrGroup,
    people: _UserAccounts,
    entry: _ReportEntry,
) -> list[dict[str, Any]]:
    wanted, names = list[dict[str, Any]](), set[str]()
    for each in imported_rotations:
        missing = list[str]()
        users = people.find_pageable_accounts(each.users, holder, missing)
        entry.notes += [f"{each.name}: {one}" for one in dict.fromkeys(missing)]
        if not users:
            entry.notes.append(f"{each.name} is skipped because none of its users can be on call.")
            continue
        name = each.name[: MAX_SCHEDULE_NAME_LENGTH - 5]
        while name in names:
            name = f"{each.name[: MAX_SCHEDULE_NAME_LENGTH - 5]} ({len(names) + 1})"
        names.add(name)
        wanted.append(
            {
                "users": [one.username for one in users],
                "name": name,
                "layer": each.layer,
                "starts_on": each.starts_at.date(),
                **build_handoff_fields(each.cadence),
                "restrictions": [build_restriction_fields(one) for one in each.restrictions],
            }
        )
    return wanted


def _create_overrides(
    schedule: ImportedSchedule,
    on_call_schedule: OnCallSchedule,
    holder: ProjectOrGroup,
    people: _UserAccounts,
    entry: _ReportEntry,
) -> None:
    for each in schedule.overrides:
        for user in people.find_pageable_accounts([each.user], holder, entry.notes):
            new = NewOverride(user=user.username, starts_at=each.starts_at, ends_at=each.ends_at)
            try:
                with db.session().begin_nested():
                    create_override(get_unit_of_work(), holder, on_call_schedule.id, new)
            except DomainError as error:
                entry.notes.append(f"Override of {user.username}: {error}")


def _import_policies(
    imported_policies: Iterable[ImportedPolicy],
    people: _UserAccounts,
    places: _ImportTargets,
    schedules: _ScheduleIds,
) -> list[_ReportEntry]:
    """Create the missing policies and return the report entries for all policies."""
    entries = []
    for policy in imported_policies:
        entry, holder = places.build_entry("policy", policy.name, policy.team)
        entries.append(entry)
        if holder is None:
            continue
        present = list_own_policies(holder, session=db.session())
        if fold_text(policy.name.strip()) not in {fold_text(each.name) for each in present}:
            has_default = any(each.default for each in present)
            steps = _build_steps(policy.steps, holder, people, schedules, entry)
            _create_policy(policy, steps, holder, entry, has_default=has_default)
    return entries


def _create_policy(
    policy: ImportedPolicy,
    steps: list[EscalationStepBody],
    holder: ProjectOrGroup,
    entry: _ReportEntry,
    *,
    has_default: bool,
) -> None:
    entry.notes += policy.notes
    if policy.is_default and has_default:
        entry.notes.append("Another policy is already the default. Add a route to this policy.")
    if not steps:
        entry.notes.append("None of its steps can be imported.")
    pause: dict[str, Any] = {}
    if policy.pause is not None:
        pause = {"repeat_pause": min(max(policy.pause, MIN_REPEAT_PAUSE), MAX_REPEAT_PAUSE)}
    new = NewPolicy.model_construct(
        name=policy.name,
        steps=steps,
        repeats=policy.repeats,
        default=policy.is_default and not has_default,
        **pause,
    )
    _create_or_note_error(entry, lambda: create_policy(get_unit_of_work(), holder, new))


def _build_steps(
    imported_steps: Iterable[ImportedStep],
    holder: ProjectOrGroup,
    people: _UserAccounts,
    schedules: _ScheduleIds,
    entry: _ReportEntry,
) -> list[EscalationStepBody]:
    usable = {
        each.id for each in list_all_schedules(get_unit_of_work(), holder, with_groups_above=True)
    }
    steps = []
    for number, step in enumerate(imported_steps, 1):
        notes = list[str]()
        users = people.find_pageable_accounts(step.users, holder, notes)
        targets = [EscalationTargetBody(type="user", id=each.id) for each in users]
        for key in step.schedules:
            schedule_id = schedules.get(key)
            if schedule_id in usable:
                targets.append(EscalationTargetBody(type="schedule", id=schedule_id))
            else:
                notes.append("its schedule is not in this project or group, or in a group above.")
        if step.after > MAX_STEP_DELAY:
            targets = []
            notes.append("its delay is longer than 24 hours.")
        if targets:
            takes_turns = step.takes_turns and len(targets) > 1
            steps.append(
                EscalationStepBody.model_construct(
                    delay=step.after, targets=targets, round_robin=takes_turns
                )
            )
        else:
            notes.append("the step is skipped.")
        entry.notes += [f"Step {number}: {each}" for each in dict.fromkeys(notes)]
    return steps


def execute_import_plan(
    plan: ImportPlan,
    *,
    by_team: Mapping[str, ProjectOrGroup],
    otherwise: ProjectOrGroup | None,
    options: UserOptions,
    integration_project: ProjectView | None = None,
) -> dict[str, Any]:
    """Create the missing objects and return a report.

    New accounts are stored one by one. All other objects are stored together or not at all.
    Existing objects with the same name are unchanged, so a second run has no effect.
    """
    places = _ImportTargets(
        teams=plan.teams,
        by_team=by_team,
        otherwise=otherwise,
        integration_project=integration_project,
    )
    people = _UserAccounts(options=options)
    people.find_or_create_accounts(plan.users)
    schedules, ids = _import_schedules(plan.schedules, people, places)
    policies = _import_policies(plan.policies, people, places, ids)
    integrations = _import_integrations(plan.integrations, places)
    entries = [*people.entries, *schedules, *policies, *integrations]
    return _build_report(entries, plan.left_out, is_dry_run=False)


def simulate_import_plan(
    plan: ImportPlan, *, options: UserOptions, **places: Any
) -> dict[str, Any]:
    """Return the report of `execute_import_plan`, and roll all changes back."""
    savepoint = db.session().begin_nested()
    try:
        report = execute_import_plan(plan, options=replace(options, is_trial=True), **places)
    finally:
        savepoint.rollback()
    for kind in ("users", "integrations"):
        for entry in report[kind]:
            for name in _SECRET_FIELDS:
                entry.pop(name, None)
    return {**report, "dry_run": True}
