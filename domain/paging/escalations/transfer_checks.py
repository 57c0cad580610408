"""Checks that prevent transfers of projects and groups from breaking paging.

After a transfer, policies, routes and incident rules must not refer to items of groups that are no
longer ancestors.
"""

from dataclasses import replace

from sqlalchemy import select

from domain.access.actor import UnitOfWork
from domain.core.database.locks import AdvisoryLock
from domain.core.errors import ConflictError
from domain.paging.escalations.locks import schedule_escalations_now
from domain.paging.escalations.policies import lock_policies_and_routes
from domain.paging.escalations.policy_steps import Target, TargetKind, parse_stored_steps
from domain.paging.escalations.state import ACTIVE_STATES
from domain.paging.on_call.dependent_incident_rules import check_no_dependent_rules
from domain.projects.paths import list_ancestor_paths
from domain.projects.row_ownership import find_group_chain, is_owned_in_subtree, select_project_ids
from domain.projects.views import ProjectOrGroup
from models import (
    AlertRoute,
    Contact,
    Escalation,
    EscalationPolicy,
    Group,
    OnCallSchedule,
    Project,
)
from models.case_folding import fold_text


def prepare_transfer(work: UnitOfWork, holder: ProjectOrGroup, above: str | None) -> None:
    """Check a transfer into a group or to the top level, and update active escalations.

    `above` is the path of the new parent group, or None for the top level. Active escalations whose
    policy no longer applies choose another policy immediately. Raise ConflictError if a policy,
    route or incident rule refers to an item of a group that is no longer an ancestor.
    """
    AdvisoryLock.TRANSFERS.acquire(work.session)  # This lock precedes locks on policies and routes.
    # The project or group may have been renamed before the lock was taken. With the lock, its path
    # cannot change.
    table: type[Group | Project] = Group if holder.is_group else Project
    path = work.session.scalar(select(table.path).where(table.id == holder.id))
    holder = replace(holder, path=path or holder.path)
    lock_policies_and_routes(holder, session=work.session)
    left = _find_removed_ancestor_ids(work, holder, above)
    if not left:
        return
    _check_policies(work, holder, left)
    _check_routes(work, holder, left)
    schedules = select(OnCallSchedule.id).where(OnCallSchedule.group_id.in_(left))
    ids = work.session.scalars(schedules).all()
    check_no_dependent_rules(ids, holder, field="path", session=work.session)
    schedule_escalations_now(
        Escalation.project_id.in_(select_project_ids(holder)),
        Escalation.state.in_([each.value for each in ACTIVE_STATES]),
        session=work.session,
        now=work.now,
    )


def _find_removed_ancestor_ids(
    work: UnitOfWork, holder: ProjectOrGroup, above: str | None
) -> list[int]:
    """Return the IDs of the groups that are no longer ancestors after the transfer."""
    kept = [fold_text(path) for path in (*list_ancestor_paths(above), above)] if above else []
    own = [holder.id] if holder.is_group else []
    present = find_group_chain(holder, session=work.session).group_ids
    statement = select(Group.id).where(
        Group.id.in_(present), Group.id.not_in(own), Group.path_key.not_in(kept)
    )
    return list(work.session.scalars(statement))


def _check_policies(work: UnitOfWork, holder: ProjectOrGroup, left: list[int]) -> None:
    named = {
        Target(kind, row.id): row
        for kind, table, name in (
            (TargetKind.SCHEDULE, OnCallSchedule, OnCallSchedule.name),
            (TargetKind.CHANNEL, Contact, Contact.label.label("name")),
        )
        for row in work.session.execute(
            select(table.id, name, Group.path)
            .join(Group, Group.id == table.group_id)
            .where(table.group_id.in_(left))
        )
    }
    policies = work.session.execute(
        select(EscalationPolicy.name, EscalationPolicy.steps)
        .where(is_owned_in_subtree(EscalationPolicy, holder))
        .order_by(EscalationPolicy.id)
    )
    for policy in policies if named else ():
        targets = {target for step in parse_stored_steps(policy.steps) for target in step.targets}
        for target in sorted(targets & named.keys(), key=lambda each: (each.kind, each.id)):
            message = (
                f"The escalation policy {policy.name} pages the {target.kind} "
                f"{named[target].name} of {named[target].path}. Remove it from the policy first."
            )
            raise ConflictError(message, field="path")


def _check_routes(work: UnitOfWork, holder: ProjectOrGroup, left: list[int]) -> None:
    found = work.session.execute(
        select(AlertRoute.name, EscalationPolicy.name.label("policy"), Group.path)
        .join(EscalationPolicy, EscalationPolicy.id == AlertRoute.policy_id)
        .join(Group, Group.id == EscalationPolicy.group_id)
        .where(is_owned_in_subtree(AlertRoute, holder), Group.id.in_(left))
        .order_by(AlertRoute.id)
    ).first()
    if found is not None:
        message = (
            f"The route {found.name} uses the escalation policy {found.policy} of "
            f"{found.path}. Change or delete the route first."
        )
        raise ConflictError(message, field="path")
