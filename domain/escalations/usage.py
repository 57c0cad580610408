"""Which policies page a schedule or channel, for those who want to delete it."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.errors import ConflictError
from domain.escalations.policies import lock_rules
from domain.escalations.steps import Target, TargetKind, read_steps
from models import EscalationPolicy

_WORDS = {TargetKind.SCHEDULE: "schedule", TargetKind.CHANNEL: "channel", TargetKind.USER: "user"}


def policies_with(target: Target, project_id: int, *, session: Session) -> tuple[str, ...]:
    """Return the names of the project's policies that page a target."""
    rows = session.execute(
        select(EscalationPolicy.name, EscalationPolicy.steps)
        .where(EscalationPolicy.project_id == project_id)
        .order_by(EscalationPolicy.name_key)
    )
    return tuple(
        row.name for row in rows if any(target in step.targets for step in read_steps(row.steps))
    )


def check_unused(target: Target, project_id: int, *, session: Session) -> None:
    """Raise ConflictError that names a policy if one pages the target."""
    lock_rules(project_id, session=session)  # No policy begins to page it meanwhile.
    found = policies_with(target, project_id, session=session)
    if found:
        message = (
            f"The escalation policy {found[0]} pages this {_WORDS[target.kind]}. "
            "Take it out of the policy first."
        )
        raise ConflictError(message)
