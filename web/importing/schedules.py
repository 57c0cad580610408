"""Creates the schedules of an export."""

from collections.abc import Iterable

from domain.errors import DomainError
from domain.importing.plan import ImportedRotation, ImportedSchedule
from domain.on_call.change_permissions import OPERATOR
from domain.on_call.overrides import NewOverride, create_override
from domain.on_call.rotations import LONGEST_NAME, NewRotation
from domain.on_call.schedules import NewSchedule, ScheduleView, create_schedule, find_schedule
from domain.projects.views import ProjectView
from web.extensions import db
from web.importing.people import People
from web.importing.report import Entry, Outcome
from web.importing.target_projects import Places
from web.on_call.audit import record_override_change, record_schedule_change
from web.services import now

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
        view = find_schedule(project.id, schedule.name, session=db.session())
        view = view or _create(schedule, project, people, entry)
        if view is not None:
            ids[schedule.key] = (project.id, view.id)
    return entries, ids


def _create(
    schedule: ImportedSchedule, project: ProjectView, people: People, entry: Entry
) -> ScheduleView | None:
    session = db.session()
    entry.notes += schedule.notes
    new = NewSchedule(
        name=schedule.name,
        time_zone=schedule.time_zone,
        description=schedule.description,
        rotations=_rotations(schedule.rotations, project, people, entry),
    )
    try:
        with session.begin_nested():
            made = create_schedule(project.namespace, new, session=session, now=now())
    except DomainError as error:
        entry.outcome = Outcome.LEFT_OUT
        entry.notes.append(str(error))
        return None
    record_schedule_change("created", project, made)
    entry.outcome = Outcome.CREATED
    if not new.rotations:
        entry.notes.append("It has no rotations: add some, or nobody is ever on call.")
    _override(schedule, made, project, people, entry)
    return made


def _rotations(
    found: Iterable[ImportedRotation], project: ProjectView, people: People, entry: Entry
) -> list[NewRotation]:
    wanted, names = list[NewRotation](), set[str]()
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
            NewRotation(
                usernames=[one.username for one in users],
                cadence=each.cadence,
                name=name,
                layer=each.layer,
                starts_on=each.starts_at.date(),
                restrictions=each.restrictions,
            )
        )
    return wanted


def _override(
    schedule: ImportedSchedule,
    made: ScheduleView,
    project: ProjectView,
    people: People,
    entry: Entry,
) -> None:
    session = db.session()
    for each in schedule.overrides:
        for user in people.reachable([each.user], project, entry.notes):
            new = NewOverride(
                username=user.username, starts_at=each.starts_at, ends_at=each.ends_at
            )
            try:
                with session.begin_nested():
                    stored = create_override(
                        project.namespace, made.id, new, by=OPERATOR, session=session, now=now()
                    )
            except DomainError as error:
                entry.notes.append(f"Override of {user.username}: {error}")
                continue
            record_override_change("created", project, made, stored)
