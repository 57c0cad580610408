"""Creates the escalation policies of an export."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from domain.errors import DomainError
from domain.escalations.actions import create_policy
from domain.escalations.policies import all_policies
from domain.escalations.steps import (
    LONGEST_DELAY,
    LONGEST_PAUSE,
    SHORTEST_PAUSE,
)
from domain.escalations.types import GivenStep, GivenTarget, NewPolicy
from domain.importing.plan import ImportedPolicy, ImportedStep
from domain.projects.views import ProjectView
from models.folding import fold
from web.extensions import db
from web.http.work import work
from web.importing.people import People
from web.importing.report import Entry, Outcome
from web.importing.schedules import Schedules
from web.importing.target_projects import Places


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
            _create(policy, steps, project, entry, has_default=has_default)
    return entries


def _create(
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
