"""Creates the schedules of an export."""

from collections.abc import Iterable
from typing import Any

from domain.errors import DomainError
from domain.importing.plan import ImportedRotation, ImportedSchedule
from domain.on_call.actions import create_schedule
from domain.on_call.override_actions import create_override
from domain.on_call.schedules import find_schedule
from domain.on_call.types import (
    LONGEST_NAME,
    NewOverride,
    NewSchedule,
    OnCallSchedule,
    handover_fields,
    restriction_fields,
)
from domain.projects.views import ProjectView
from domain.types.reading import read_body
from web.extensions import db
from web.http.work import work
from web.importing.people import People
from web.importing.report import Entry, Outcome
from web.importing.target_projects import Places

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
        view = view or _create(schedule, project, people, entry)
        if view is not None:
            ids[schedule.key] = (project.id, view.id)
    return entries, ids


def _create(
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
