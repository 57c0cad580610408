"""Creates what a plan asks for, or tries it and takes it all back."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from domain.importing.plan import ImportPlan
from domain.projects.views import ProjectView
from web.extensions import db
from web.importing.integrations import import_integrations
from web.importing.people import People, PeopleOptions
from web.importing.policies import import_policies
from web.importing.report import report_of
from web.importing.schedules import import_schedules
from web.importing.target_projects import Places

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
