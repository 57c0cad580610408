"""Creates what a plan asks for, or tries it and takes it all back."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from domain.access.roles import Role
from domain.accounts.administration import add_account, generate_password
from domain.accounts.names import as_segment
from domain.accounts.passwords import HashCost
from domain.accounts.users import NewUser, UserView, find_user
from domain.alerts.integrations.actions import create_integration
from domain.alerts.integrations.integrations import list_integrations
from domain.alerts.integrations.types import NewIntegration
from domain.database.locks import release_locks
from domain.errors import DomainError
from domain.escalations.actions import create_policy
from domain.escalations.policies import all_policies, who_may_be_paged
from domain.escalations.steps import LONGEST_DELAY, LONGEST_PAUSE, SHORTEST_PAUSE
from domain.escalations.types import GivenStep, GivenTarget, NewPolicy
from domain.importing.plan import (
    ImportedIntegration,
    ImportedPolicy,
    ImportedRotation,
    ImportedSchedule,
    ImportedStep,
    ImportedUser,
    ImportPlan,
    LeftOut,
)
from domain.on_call.actions import create_schedule
from domain.on_call.change_actions import create_override
from domain.on_call.schedules import find_schedule
from domain.on_call.types import (
    LONGEST_NAME,
    NewOverride,
    NewSchedule,
    OnCallSchedule,
    handover_fields,
    restriction_fields,
)
from domain.projects.members import OPERATOR, add_member, record_joined
from domain.projects.views import ProjectView
from domain.types.reading import read_body
from models.folding import fold
from web.extensions import db
from web.http.work import work
from web.services import now, settings
from web.settings.policies import password_rules


class Outcome(StrEnum):
    """What became of something."""

    CREATED = "created"
    #: It was there already, and stays as it is.
    EXISTS = "exists"
    LEFT_OUT = "left out"


@dataclass(kw_only=True)
class Entry:
    """One thing of an export."""

    kind: str
    name: str
    outcome: Outcome
    #: The path of a project.
    project: str | None = None
    #: In what it differs, or why it is left out.
    notes: list[str] = field(default_factory=list)
    #: Such as the URL of an integration.
    details: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return its members."""
        found: dict[str, Any] = {"name": self.name, "outcome": self.outcome.value}
        if self.project is not None:
            found["project"] = self.project
        return {**found, **self.details, "notes": self.notes}


_LISTS = {
    "user": "users",
    "schedule": "schedules",
    "policy": "policies",
    "integration": "integrations",
}


def report_of(
    entries: Sequence[Entry], left_out: Sequence[LeftOut], *, is_dry_run: bool
) -> dict[str, Any]:
    """Return the report of an import as one JSON object."""
    counts = Counter(each.outcome for each in entries)
    counts[Outcome.LEFT_OUT] += len(left_out)
    return {
        "dry_run": is_dry_run,
        "summary": {each.value.replace(" ", "_"): counts[each] for each in Outcome},
        **{
            plural: [each.as_json() for each in entries if each.kind == kind]
            for kind, plural in _LISTS.items()
        },
        "left_out": [
            {"kind": each.kind, "name": each.name, "reason": each.reason} for each in left_out
        ],
    }


@dataclass(frozen=True, kw_only=True)
class Places:
    """Projects of teams, and the one of everything else."""

    #: Names of the export's teams by key.
    teams: Mapping[str, str]
    #: By the name of a team, in lower case.
    by_team: Mapping[str, ProjectView]
    otherwise: ProjectView | None

    def of(self, team: str | None) -> ProjectView | None:
        """Return the project for what a team owns, given by its key."""
        name = self.teams.get(team, "") if team else ""
        return self.by_team.get(name.lower(), self.otherwise)

    def without(self, kind: str, name: str, team: str | None) -> Entry:
        """Return the entry of something that has no project."""
        owner = self.teams.get(team, team) if team else None
        reason = (
            f"Its team {owner} has no project: use --team “{owner}=group/project”, or --project."
            if owner
            else "It belongs to no team: use --project."
        )
        return Entry(kind=kind, name=name, outcome=Outcome.LEFT_OUT, notes=[reason])


def import_integrations(found: Iterable[ImportedIntegration], places: Places) -> list[Entry]:
    """Create the integrations that are not there; return what became of each.

    Those that are new have their URL and key, which senders have to be given.
    """
    entries = []
    for integration in found:
        project = places.of(integration.team)
        if project is None:
            entries.append(places.without("integration", integration.name, integration.team))
            continue
        entry = Entry(
            kind="integration",
            name=integration.name,
            outcome=Outcome.EXISTS,
            project=project.path,
        )
        entries.append(entry)
        present = list_integrations(work(), project)
        if fold(integration.name.strip()) not in {fold(each.name) for each in present}:
            _create(integration, project, entry)
    return entries


def _create(integration: ImportedIntegration, project: ProjectView, entry: Entry) -> None:
    unit, kind = work(), integration.type
    given = {
        "type": kind.name,
        "name": integration.name.strip(),
        "active": integration.is_active,
    }
    try:
        with unit.session.begin_nested():
            made = create_integration(unit, project, read_body(NewIntegration, given))
    except DomainError as error:
        entry.outcome = Outcome.LEFT_OUT
        entry.notes.append(str(error))
        return
    entry.outcome = Outcome.CREATED
    entry.notes += integration.notes
    entry.details = {"type": kind.name, "url": made.url, "key": made.key}


#: Of passwords that nobody will ever have.
_CHEAP = HashCost(memory_kib=64, passes=1)


@dataclass(frozen=True, kw_only=True)
class PeopleOptions:
    """What may be done for people who are missing."""

    #: Create accounts, and make them members.
    creates_users: bool = False
    #: Make accounts that are there members.
    adds_members: bool = False
    #: Whether everything is taken back in the end.
    is_trial: bool = False


@dataclass(kw_only=True)
class People:
    """The people of an export by their keys."""

    options: PeopleOptions
    entries: list[Entry] = field(default_factory=list)
    _accounts: dict[str, UserView] = field(default_factory=dict)
    _entries: dict[str, Entry] = field(default_factory=dict)
    _created: set[int] = field(default_factory=set)

    def find(self, users: Sequence[ImportedUser]) -> None:
        """Find the account of each, or create it."""
        for user in users:
            entry = Entry(kind="user", name=user.username or user.email, outcome=Outcome.EXISTS)
            account = self._account(user, entry)
            if account is not None:
                self._accounts[user.key] = account
                entry.details = {"username": account.username, **entry.details}
            self._entries[user.key] = entry
            self.entries.append(entry)

    def _account(self, user: ImportedUser, entry: Entry) -> UserView | None:
        session = db.session()
        by_email = find_user(user.email, session=session) if user.email else None
        if by_email is not None:
            return by_email
        by_name = find_user(user.username, session=session) if user.username else None
        if by_name is not None:
            if user.email:
                entry.notes.append(
                    f"Found by user name: the account has another e-mail address than {user.email}."
                )
            return by_name
        if self.options.creates_users:
            return self._create(user, entry)
        entry.outcome = Outcome.LEFT_OUT
        entry.notes.append("No account has this e-mail address: use --create-users.")
        return None

    def _create(self, user: ImportedUser, entry: Entry) -> UserView | None:
        username = as_segment(user.username)
        password = generate_password(username)
        new = NewUser(username=username, email=user.email, name=user.name[:200], password=password)
        session = db.session()
        rules = password_rules(settings())
        if self.options.is_trial:
            rules = replace(rules, cost=_CHEAP)
        else:
            release_locks(session)  # A password takes a while to hash.
        try:
            made = add_account(work(), new, rules)
        except (DomainError, ValueError) as error:
            entry.outcome = Outcome.LEFT_OUT
            entry.notes.append(str(error))
            return None
        entry.outcome = Outcome.CREATED
        entry.details["password"] = password
        self._created.add(made.id)
        return made

    def reachable(
        self, keys: Sequence[str], project: ProjectView, notes: list[str]
    ) -> list[UserView]:
        """Return those who can be on call and be paged in a project; notes say who cannot."""
        found = []
        for key in keys:
            account = self._accounts.get(key)
            if account is None:
                entry = self._entries.get(key)
                notes.append(f"{entry.name if entry else key} has no account.")
            elif self._can_be_paged(account, project) or self._join(key, account, project):
                found.append(account)
            else:
                notes.append(
                    f"{account.username} does not have the Developer role in {project.path}."
                )
        return found

    def _can_be_paged(self, account: UserView, project: ProjectView) -> bool:
        return account.id in who_may_be_paged(
            project.namespace, [account.id], session=db.session(), today=now().date()
        )

    def _join(self, key: str, account: UserView, project: ProjectView) -> bool:
        may = self.options.adds_members or account.id in self._created
        if not may:
            return False
        session, place = db.session(), project.namespace
        try:
            with session.begin_nested():
                member = add_member(
                    place, account.username, Role.DEVELOPER, by=OPERATOR, session=session, now=now()
                )
        except DomainError as error:
            self._entries[key].notes.append(str(error))
            return False
        record_joined(work(), place, member, Role.DEVELOPER)
        self._entries[key].notes.append(f"Added to {project.path} as a Developer.")
        return self._can_be_paged(account, project)


#: Schedules by their keys in the export: the ids of project and schedule.
Schedules = dict[str, tuple[int, int]]


def import_schedules(
    found: Iterable[ImportedSchedule], people: People, places: Places
) -> tuple[list[Entry], Schedules]:
    """Create the schedules that are not there; return what became of each, and their ids."""
    entries, ids = list[Entry](), Schedules()
    for schedule in found:
        project = places.of(schedule.team)
        if project is None:
            entries.append(places.without("schedule", schedule.name, schedule.team))
            continue
        entry = Entry(
            kind="schedule",
            name=schedule.name,
            outcome=Outcome.EXISTS,
            project=project.path,
        )
        entries.append(entry)
        view = find_schedule(work(), project, schedule.name)
        view = view or _create_schedule(schedule, project, people, entry)
        if view is not None:
            ids[schedule.key] = (project.id, view.id)
    return entries, ids


def _create_schedule(
    schedule: ImportedSchedule, project: ProjectView, people: People, entry: Entry
) -> OnCallSchedule | None:
    entry.notes += schedule.notes
    rotations = _rotations(schedule.rotations, project, people, entry)
    given = {
        "name": schedule.name,
        "time_zone": schedule.time_zone,
        "description": schedule.description,
        "rotations": rotations,
    }
    try:
        with db.session().begin_nested():
            made = create_schedule(work(), project, read_body(NewSchedule, given))
    except DomainError as error:
        entry.outcome = Outcome.LEFT_OUT
        entry.notes.append(str(error))
        return None
    entry.outcome = Outcome.CREATED
    if not rotations:
        entry.notes.append("It has no rotations: add some, or nobody is ever on call.")
    _override(schedule, made, project, people, entry)
    return made


def _rotations(
    found: Iterable[ImportedRotation], project: ProjectView, people: People, entry: Entry
) -> list[dict[str, Any]]:
    wanted, names = list[dict[str, Any]](), set[str]()
    for each in found:
        missing = list[str]()
        users = people.reachable(each.users, project, missing)
        entry.notes += [f"{each.name}: {one}" for one in dict.fromkeys(missing)]
        if not users:
            entry.notes.append(f"{each.name} is left out: none of its users can be on call.")
            continue
        name = each.name[: LONGEST_NAME - 5]
        while name in names:
            name = f"{each.name[: LONGEST_NAME - 5]} ({len(names) + 1})"
        names.add(name)
        wanted.append(
            {
                "users": [one.username for one in users],
                "name": name,
                "layer": each.layer,
                "starts_on": each.starts_at.date(),
                **handover_fields(each.cadence),
                "restrictions": [restriction_fields(one) for one in each.restrictions],
            }
        )
    return wanted


def _override(
    schedule: ImportedSchedule,
    made: OnCallSchedule,
    project: ProjectView,
    people: People,
    entry: Entry,
) -> None:
    for each in schedule.overrides:
        for user in people.reachable([each.user], project, entry.notes):
            new = NewOverride(user=user.username, starts_at=each.starts_at, ends_at=each.ends_at)
            try:
                with db.session().begin_nested():
                    create_override(work(), project, made.id, new)
            except DomainError as error:
                entry.notes.append(f"Override of {user.username}: {error}")


def import_policies(
    found: Iterable[ImportedPolicy], people: People, places: Places, schedules: Schedules
) -> list[Entry]:
    """Create the policies that are not there; return what became of each."""
    entries = []
    for policy in found:
        project = places.of(policy.team)
        if project is None:
            entries.append(places.without("policy", policy.name, policy.team))
            continue
        entry = Entry(kind="policy", name=policy.name, outcome=Outcome.EXISTS, project=project.path)
        entries.append(entry)
        present = all_policies(project.id, session=db.session())
        if fold(policy.name.strip()) not in {fold(each.name) for each in present}:
            has_default = any(each.default for each in present)
            steps = _steps(policy.steps, project, people, schedules, entry)
            _create_policy(policy, steps, project, entry, has_default=has_default)
    return entries


def _create_policy(
    policy: ImportedPolicy,
    steps: list[GivenStep],
    project: ProjectView,
    entry: Entry,
    *,
    has_default: bool,
) -> None:
    entry.notes += policy.notes
    if policy.is_default and has_default:
        entry.notes.append("The project has another default policy: add a route to this one.")
    try:
        if not steps:
            entry.notes.append("None of its steps can be imported.")
        with db.session().begin_nested():
            create_policy(work(), project, _new(policy, steps, has_default=has_default))
    except DomainError as error:
        entry.outcome = Outcome.LEFT_OUT
        entry.notes.append(str(error))
        return
    entry.outcome = Outcome.CREATED


def _new(policy: ImportedPolicy, steps: list[GivenStep], *, has_default: bool) -> NewPolicy:
    given: dict[str, Any] = {} if policy.pause is None else {"repeat_pause": _pause(policy.pause)}
    return NewPolicy.model_construct(
        name=policy.name,
        steps=steps,
        repeats=policy.repeats,
        default=policy.is_default and not has_default,
        **given,
    )


def _pause(pause: timedelta) -> timedelta:
    return min(max(pause, SHORTEST_PAUSE), LONGEST_PAUSE)


def _steps(
    found: Iterable[ImportedStep],
    project: ProjectView,
    people: People,
    schedules: Schedules,
    entry: Entry,
) -> list[GivenStep]:
    steps = []
    for number, step in enumerate(found, 1):
        notes = list[str]()
        users = people.reachable(step.users, project, notes)
        targets = [GivenTarget(type="user", id=each.id) for each in users]
        for key in step.schedules:
            place, schedule_id = schedules.get(key, (0, 0))
            if place == project.id:
                targets.append(GivenTarget(type="schedule", id=schedule_id))
            else:
                notes.append("its schedule is not in this project.")
        if step.after > LONGEST_DELAY:
            targets = []
            notes.append("it is more than 24 hours after the alert.")
        if targets:
            steps.append(GivenStep.model_construct(delay=step.after, targets=targets))
        else:
            notes.append("the step is left out.")
        entry.notes += [f"Step {number}: {each}" for each in dict.fromkeys(notes)]
    return steps


#: What only a real import makes.
_SECRETS = ("password", "key", "url")


def apply_plan(
    plan: ImportPlan,
    *,
    by_team: Mapping[str, ProjectView],
    otherwise: ProjectView | None,
    options: PeopleOptions,
) -> dict[str, Any]:
    """Create what is not there, and return what became of each thing.

    New accounts are stored one by one, everything else at once or not at all. What is there under
    the same name stays as it is, so a second run changes nothing.
    """
    places = Places(teams=plan.teams, by_team=by_team, otherwise=otherwise)
    people = People(options=options)
    people.find(plan.users)
    schedules, ids = import_schedules(plan.schedules, people, places)
    policies = import_policies(plan.policies, people, places, ids)
    integrations = import_integrations(plan.integrations, places)
    entries = [*people.entries, *schedules, *policies, *integrations]
    return report_of(entries, plan.left_out, is_dry_run=False)


def try_plan(plan: ImportPlan, *, options: PeopleOptions, **places: Any) -> dict[str, Any]:
    """Return what `apply_plan` would do; nothing of it stays."""
    savepoint = db.session().begin_nested()
    try:
        report = apply_plan(plan, options=replace(options, is_trial=True), **places)
    finally:
        savepoint.rollback()
    for kind in ("users", "integrations"):
        for entry in report[kind]:
            for name in _SECRETS:
                entry.pop(name, None)
    return {**report, "dry_run": True}
