"""Escalation chains of Grafana OnCall as policies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

from pydantic import Field

from domain.importing.entities import Entity, Text, Texts
from domain.importing.plan import ImportedPolicy, ImportedStep, LeftOut

#: What “repeat escalation” does.
_REPEATS = 5
_NOT_TAKEN = {
    "notify_user_group": "Slack groups cannot be paged: name users or a schedule.",
    "notify_team_members": "The export does not say who is in a team: name users or a schedule.",
    "notify_whole_channel": "Create a channel in the project, and page it.",
    "trigger_webhook": "Add a webhook to the project; it is called when an alert changes.",
    "trigger_action": "Add a webhook to the project; it is called when an alert changes.",
    "resolve": "A policy does not resolve alerts.",
    "declare_incident": "Add an incident rule.",
    "notify_if_time_from_to": "Steps have no times of day: what follows pages at any time.",
    "notify_if_num_alerts_in_window": "Steps do not count alerts: what follows pages immediately.",
}


class Chain(Entity):
    """An escalation chain."""

    id: Text
    name: Text
    team_id: Text = ""


class Policy(Entity):
    """A step of a chain, which the API calls an escalation policy."""

    escalation_chain_id: Text
    position: int = 0
    type: Text = ""
    duration: Annotated[int, Field(ge=0, le=31_557_600)] | None = None
    persons_to_notify: Texts = ()
    persons_to_notify_next_each_time: Texts = ()
    notify_on_call_from_schedule: Text = ""


@dataclass(kw_only=True)
class _Walk:
    """A walk over the steps of a chain."""

    chain: Chain
    left_out: list[LeftOut]
    after: timedelta = timedelta()
    repeats: int = 0
    steps: list[ImportedStep] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def take(self, number: int, step: Policy) -> None:
        """Take one step over, or say why not."""
        if step.type == "wait":
            self.after += timedelta(seconds=max(step.duration or 0, 0))
        elif step.type == "repeat_escalation":
            self.repeats = _REPEATS
        elif step.notify_on_call_from_schedule:
            schedules = (step.notify_on_call_from_schedule,)
            self.steps.append(ImportedStep(after=self.after, schedules=schedules))
        elif users := step.persons_to_notify or step.persons_to_notify_next_each_time:
            if step.persons_to_notify_next_each_time and len(users) > 1:
                self.notes.append(
                    f"Step {number} paged one user after the other; here it pages all of them."
                )
            self.steps.append(ImportedStep(after=self.after, users=users))
        else:
            reason = _NOT_TAKEN.get(step.type, f"Unsupported step: {step.type or '(none)'}.")
            name = f"{self.chain.name}: step {number}"
            self.left_out.append(LeftOut(kind="step", name=name, reason=reason))


def policy_of(
    chain: Chain, steps: Sequence[Policy], default: str, left_out: list[LeftOut]
) -> ImportedPolicy:
    """Return a policy with the steps that can be taken over."""
    walk = _Walk(chain=chain, left_out=left_out)
    mine = [each for each in steps if each.escalation_chain_id == chain.id]
    for number, step in enumerate(sorted(mine, key=lambda each: each.position), 1):
        walk.take(number, step)
    return ImportedPolicy(
        key=chain.id,
        team=chain.team_id or None,
        name=chain.name,
        steps=tuple(walk.steps),
        repeats=walk.repeats,
        # The next round begins when a wait at the end is over.
        pause=_rest(walk),
        is_default=chain.id == default,
        notes=tuple(walk.notes),
    )


def _rest(walk: _Walk) -> timedelta | None:
    last = walk.steps[-1].after if walk.steps else timedelta()
    return walk.after - last if walk.after > last else None
