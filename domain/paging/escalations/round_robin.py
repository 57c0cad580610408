"""The rotation of targets in round-robin steps: each new alert pages the next target.

The last target of each step is stored in the database. Its row stays locked until the transaction
ends, so two workers cannot page the same target.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_session_insert
from domain.paging.escalations.policy_steps import EscalationPlan, Step, Target, TargetKind
from models import EscalationPolicy, EscalationTurn


class RoundRobinTurns:
    """The targets that round-robin steps paged last, by policy ID and step number."""

    def __init__(self, rows: Collection[EscalationTurn] = ()) -> None:
        self._rows = {(row.policy_id, row.step): row for row in rows}

    def order_targets(self, policy_id: int | None, number: int, step: Step) -> Sequence[Target]:
        """Return the targets of a step, starting with the next target in the rotation."""
        row = self._rows.get((policy_id or 0, number))
        return rotate_targets(
            step.targets, parse_stored_target(row.target) if row and row.target else None
        )

    def store_last_target(self, policy_id: int | None, number: int, target: Target) -> None:
        """Store the target that a step pages."""
        row = self._rows.get((policy_id or 0, number))
        if row is not None:
            row.target = serialize_target(target)


def rotate_targets(targets: Sequence[Target], target: Target | None) -> Sequence[Target]:
    """Return the targets in rotated order, starting with the target that follows `target`."""
    begin = targets.index(target) + 1 if target in targets else 0
    return [*targets[begin:], *targets[:begin]]


def serialize_target(target: Target) -> list[Any]:
    """Convert a target to its stored format."""
    return [target.kind.value, target.id]


def parse_stored_target(stored: Sequence[Any]) -> Target:
    """Parse a target from its stored format."""
    kind, number = stored
    return Target(TargetKind(kind), number)


def lock_round_robin_turns(
    plans: Mapping[int | None, EscalationPlan], *, session: Session
) -> RoundRobinTurns:
    """Lock and return the targets that round-robin steps paged last."""
    wanted = sorted(
        (policy_id, number)
        for policy_id, plan in plans.items()
        if policy_id is not None
        for number, step in enumerate(plan.steps, 1)
        if step.takes_turns
    )
    if not wanted:
        return RoundRobinTurns()
    # The lock delays deletions of these policies. The targets of a deleted policy are not needed.
    present = session.scalars(
        select(EscalationPolicy.id)
        .where(EscalationPolicy.id.in_({policy_id for policy_id, _ in wanted}))
        .order_by(EscalationPolicy.id)
        .with_for_update(read=True, key_share=True)
    ).all()
    values = [{"policy_id": each, "step": number} for each, number in wanted if each in present]
    if not values:
        return RoundRobinTurns()
    session.execute(
        build_session_insert(EscalationTurn, session=session)
        .values(values)
        .on_conflict_do_nothing()
    )
    return RoundRobinTurns(
        session.scalars(
            select(EscalationTurn)
            .where(EscalationTurn.policy_id.in_(present))
            .order_by(EscalationTurn.policy_id, EscalationTurn.step)
            .with_for_update()
            .execution_options(populate_existing=True)
        ).all()
    )
