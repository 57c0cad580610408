"""Escalation policies of a project."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from domain.durations import parse_duration
from domain.errors import InvalidError
from domain.escalations.policies import PolicyView, StepView
from domain.escalations.steps import (
    MOST_REPEATS,
    MOST_STEPS,
    MOST_TARGETS,
    USUAL_PAUSE,
    NamedStep,
    NamedTarget,
    Target,
    TargetKind,
    parse_step,
    parse_target,
)
from domain.escalations.targets import TargetView
from web.api.schemas.base import Body, Id, OffsetQuery, RequiredText, Resource, Text, Time

_Kind = Literal["user", "schedule", "channel"]


def _length(text: str) -> str:
    try:
        parse_duration(text)
    except InvalidError as error:
        raise ValueError("must be a length of time like 30s, 5m or 1h30m") from error
    return text


#: A length of time, written as 30s, 5m or 1h30m.
Duration = Annotated[Text, AfterValidator(_length)]


class EscalationPolicyQuery(OffsetQuery):
    """A part of the list, which is ordered by name."""

    order_by: Literal["name"] = "name"
    sort: Literal["asc"] = "asc"


class TargetBody(Body):
    """Whom a step pages: by id or by name."""

    type: _Kind
    id: Id | None = None
    name: Text = ""

    @property
    def target(self) -> Target | NamedTarget:
        """The target; raises InvalidError without an id and a name."""
        if self.id is not None:
            return Target(TargetKind(self.type), self.id)
        return parse_target(f"{self.type}:{self.name}")


class StepBody(Body):
    """Targets that are paged together, and when."""

    delay: Duration = Field(
        default="0s", description="Since the beginning of the round, such as `5m`."
    )
    targets: Annotated[list[TargetBody | Text], Field(min_length=1, max_length=MOST_TARGETS)] = (
        Field(description="Objects, or texts such as `user:alice` and `schedule:primary`.")
    )

    @property
    def step(self) -> NamedStep:
        """The step; raises InvalidError."""
        return NamedStep(
            after=parse_duration(self.delay, field="steps"),
            targets=tuple(
                parse_target(each) if isinstance(each, str) else each.target
                for each in self.targets
            ),
        )


Steps = Annotated[
    list[StepBody | Text],
    Field(
        min_length=1,
        max_length=MOST_STEPS,
        description="In order of time: objects, or texts such as `5m schedule:primary`.",
    ),
]


def read_steps(given: list[StepBody | str]) -> list[NamedStep]:
    """Return the steps of a request; raise InvalidError."""
    return [parse_step(each) if isinstance(each, str) else each.step for each in given]


_Repeats = Annotated[int, Field(ge=0, le=MOST_REPEATS)]


class EscalationPolicyBody(Body):
    """A new escalation policy."""

    name: RequiredText
    steps: Steps
    repeats: _Repeats = Field(default=0, description="How often the steps are repeated.")
    repeat_pause: Duration = Field(
        default=f"{int(USUAL_PAUSE.total_seconds())}s",
        description="Between the last step and the next round.",
    )
    default: bool = Field(default=False, description="For alerts that match no route.")


class EscalationPolicyChange(Body):
    """Changes to an escalation policy."""

    name: RequiredText | None = None
    steps: Steps | None = None
    repeats: _Repeats | None = None
    repeat_pause: Duration | None = None
    default: bool | None = None


class EscalationTarget(Resource):
    """Whom a step pages."""

    type: _Kind
    id: int
    name: str | None = Field(description="null if it was deleted.")

    @classmethod
    def of(cls, view: TargetView) -> "EscalationTarget":
        """Present a target."""
        return cls(type=view.kind.value, id=view.id, name=view.name)


class EscalationStep(Resource):
    """Targets that are paged together."""

    delay_seconds: int = Field(description="Since the beginning of the round.")
    targets: list[EscalationTarget]

    @classmethod
    def of(cls, view: StepView) -> "EscalationStep":
        """Present a step."""
        return cls(
            delay_seconds=_seconds(view.after),
            targets=[EscalationTarget.of(each) for each in view.targets],
        )


class EscalationPolicy(Resource):
    """An escalation policy."""

    id: int
    name: str
    default: bool
    steps: list[EscalationStep]
    repeats: int
    repeat_pause_seconds: int
    summary: str = Field(description="What it does, in words.")
    created_at: Time
    updated_at: Time

    @classmethod
    def of(cls, view: PolicyView) -> "EscalationPolicy":
        """Present a policy."""
        return cls(
            id=view.id,
            name=view.name,
            default=view.is_default,
            steps=[EscalationStep.of(each) for each in view.steps],
            repeats=view.plan.repeats,
            repeat_pause_seconds=_seconds(view.plan.pause),
            summary=" ".join(view.sentences),
            created_at=view.created_at,
            updated_at=view.updated_at,
        )


def _seconds(length: timedelta) -> int:
    return int(length.total_seconds())
