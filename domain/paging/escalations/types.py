"""Resources and request bodies for escalation policies, alert routes and the paging of alerts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from domain.alerts.matching.conditions import (
    AlertConditions,
    ConditionsBody,
    ConditionsResource,
    parse_conditions,
)
from domain.core.types.base import (
    Argument,
    Body,
    Duration,
    Id,
    Option,
    RequestTime,
    RequiredText,
    Resource,
    Text,
    Time,
    build_choices_schema,
    make_fields_optional,
)
from domain.core.types.pagination import IncludeAncestorGroups, OffsetQuery
from domain.paging.escalations.policy_steps import (
    DEFAULT_REPEAT_PAUSE,
    MAX_REPEATS,
    MAX_STEPS,
    MAX_TARGETS,
    NO_RETRIGGER_SENTENCE,
    AnyTarget,
    EscalationPlan,
    NamedStep,
    Step,
    Target,
    TargetKind,
    format_conditions,
    format_repeats,
    format_step,
    format_target,
    format_timeout,
    parse_step,
    parse_target,
)
from domain.paging.escalations.state import EscalationState
from domain.paging.notifications.states import MessageState, PageState

MAX_POLICY_NAME_LENGTH = 255
#: Retention period of page records and their outcomes. Reports cannot start earlier. Activity
#: entries of an alert are kept as long as the alert.
PAGE_RETENTION = timedelta(days=90)
_TargetType = Literal["user", "schedule", "channel"]


class EscalationTarget(Resource):
    """A user, schedule or channel that an escalation step pages."""

    type: _TargetType
    id: int
    name: str | None = Field(description="Name of the target. Null if it was deleted.")

    @property
    def form_value(self) -> str:
        """The target as a form value, such as `user:7`."""
        return f"{self.type}:{self.id}"


class EscalationStep(Resource):
    """A step of an escalation policy, with the targets that it pages."""

    delay_seconds: int = Field(description="Delay from the start of the round, in seconds.")
    targets: list[EscalationTarget]
    round_robin: bool = Field(
        description="True if the targets take turns, so that each new alert pages only the next "
        "target."
    )

    @property
    def after(self) -> timedelta:
        """Delay of the step, counted from the start of the round."""
        return timedelta(seconds=self.delay_seconds)

    @property
    def step(self) -> Step:
        """The resource converted to a step of an escalation plan."""
        targets = (Target(TargetKind(each.type), each.id) for each in self.targets)
        return Step(after=self.after, targets=tuple(targets), takes_turns=self.round_robin)

    @property
    def description(self) -> str:
        """Sentence that describes the step."""
        targets = [format_target(TargetKind(each.type), each.name) for each in self.targets]
        return format_step(self.after, targets, takes_turns=self.round_robin)


class EscalationPolicy(Resource):
    """An escalation policy: the steps in which an alert pages users and channels."""

    id: int
    group: str | None = Field(
        description="Path of the group that owns the policy. Null if a project owns it."
    )
    name: str
    default: bool
    steps: list[EscalationStep]
    repeats: int
    repeat_pause_seconds: int
    acknowledgement_timeout_seconds: int | None = Field(
        description="Number of seconds after which an acknowledgement expires. Null if it does not "
        "expire."
    )
    retrigger_when_critical: bool = Field(
        description="True if an alert that was acknowledged with a lower severity is triggered "
        "again when it becomes critical."
    )
    summary: str = Field(description="Summary of the policy.")
    created_at: Time
    updated_at: Time

    @property
    def plan(self) -> EscalationPlan:
        """The steps, repeats and timeout of the policy as an `EscalationPlan`."""
        steps = tuple(each.step for each in self.steps)
        pause = timedelta(seconds=self.repeat_pause_seconds)
        seconds = self.acknowledgement_timeout_seconds
        timeout = timedelta(seconds=seconds) if seconds else None
        return EscalationPlan(
            steps=steps,
            repeats=self.repeats,
            pause=pause,
            timeout=timeout,
            retriggers=self.retrigger_when_critical,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences that describe the steps, the repeats and the acknowledgement timeout."""
        return describe_plan(self.plan, self.steps)

    @property
    def has_deleted_targets(self) -> bool:
        """True if a target of any step was deleted."""
        return any(target.name is None for step in self.steps for target in step.targets)


def describe_plan(plan: EscalationPlan, steps: Sequence[EscalationStep]) -> tuple[str, ...]:
    """Describe the steps, the repeats and the acknowledgement timeout of a plan in sentences."""
    timeout = [format_timeout(plan.timeout)] if plan.timeout else []
    stays = [] if plan.retriggers else [NO_RETRIGGER_SENTENCE]
    repeats = format_repeats(plan.repeats, plan.pause)
    return (*(step.description for step in steps), repeats, *timeout, *stays)


class EscalationTargetBody(Body):
    """Target of an escalation step, by ID or by name."""

    type: _TargetType
    id: Id | None = None
    name: Text = ""

    @property
    def target(self) -> AnyTarget:
        """The target that the ID or the name identifies.

        Raise InvalidError if both the ID and the name are missing.
        """
        if self.id is not None:
            return Target(TargetKind(self.type), self.id)
        return parse_target(f"{self.type}:{self.name}")


class EscalationStepBody(Body):
    """A step of an escalation policy: targets, and the delay before they are paged."""

    delay: Duration = Field(
        default=timedelta(), description="Delay from the start of the round, such as `5m`."
    )
    targets: Annotated[
        list[EscalationTargetBody | Text], Field(min_length=1, max_length=MAX_TARGETS)
    ] = Field(
        description="Targets as objects, or as strings such as `user:alice` and `schedule:primary`."
    )
    round_robin: bool = Field(
        default=False,
        description="True if the targets take turns, so that each new alert pages only the next "
        "target.",
    )

    @property
    def step(self) -> NamedStep:
        """The body converted to a step with named targets.

        Raise InvalidError if a target is invalid.
        """
        targets = (
            parse_target(each) if isinstance(each, str) else each.target for each in self.targets
        )
        return NamedStep(self.delay, tuple(targets), takes_turns=self.round_robin)


class NewPolicy(Body):
    """Request body that creates an escalation policy."""

    name: RequiredText
    steps: Annotated[
        list[EscalationStepBody | Text],
        Option("--step"),
        Field(
            min_length=1,
            max_length=MAX_STEPS,
            description="Steps in order of delay, as objects or as strings such as `5m "
            "schedule:primary`. In `0s round-robin user:alice user:bob`, the targets take turns.",
        ),
    ]
    repeats: Annotated[int, Field(ge=0, le=MAX_REPEATS)] = Field(
        default=0, description="Number of times that the steps are repeated."
    )
    repeat_pause: Duration = Field(
        default=DEFAULT_REPEAT_PAUSE, description="Pause between the last step and the next round."
    )
    acknowledgement_timeout: Annotated[
        Duration | None,
        Option("--acknowledgement-timeout", null="--no-acknowledgement-timeout"),
        Field(
            description="Time after which an acknowledgement expires and the alert is triggered "
            "again, from 5 minutes to 24 hours. Null if it does not expire."
        ),
    ] = None
    retrigger_when_critical: Annotated[
        bool,
        Option("--retrigger-when-critical/--no-retrigger-when-critical"),
        Field(
            description="True to trigger an alert again when it becomes critical after it was "
            "acknowledged with a lower severity. The user who acknowledged it is paged first."
        ),
    ] = True
    default: bool = Field(
        default=False, description="True to use the policy for alerts that match no route."
    )

    @property
    def named_steps(self) -> Sequence[NamedStep]:
        """The steps with named targets.

        Raise InvalidError if a step is invalid.
        """
        return [parse_step(each) if isinstance(each, str) else each.step for each in self.steps]


@make_fields_optional
class PolicyChange(NewPolicy):
    """Changes to an escalation policy."""


class PolicyQuery(OffsetQuery):
    """Query parameters for a list of policies, ordered by name."""

    order_by: Literal["name"] = "name"
    sort: Literal["asc"] = "asc"
    include_ancestor_groups: IncludeAncestorGroups = False


class AlertRoute(ConditionsResource):
    """A route, which assigns alerts to an escalation policy."""

    id: int
    group: str | None = Field(
        description="Path of the group that owns the route. Null if a project owns it."
    )
    name: str
    position: int
    escalation_policy_id: int | None = Field(
        description="ID of the policy. Null if matching alerts do not page anyone."
    )
    created_at: Time
    updated_at: Time

    @property
    def conditions(self) -> AlertConditions:
        """The conditions that an alert must meet for the route to apply."""
        return parse_conditions(
            self.model_dump(include={"severities", "environments", "services", "labels"})
        )

    def describe_route(self, policies: Mapping[int, str]) -> str:
        """Return a sentence that describes the route.

        `policies` maps policy IDs to names.
        """
        name = policies.get(self.escalation_policy_id or 0)
        what = f"go to {name}" if name else "do not page anyone"
        return f"{format_conditions(self.conditions)} {what}."


class NewRoute(ConditionsBody):
    """Request body that creates a route."""

    name: RequiredText
    #: Policy of the route, by ID or name. The field is required, so that a misspelled field name
    #: cannot create a route that does not page anyone.
    escalation_policy_id: Annotated[
        Id | Text | None,
        Option("--policy", null="--nobody"),
        Field(
            union_mode="left_to_right",
            description="ID or name of the policy. Null if matching alerts do not page anyone.",
        ),
    ]
    position: Annotated[int, Field(ge=1, le=1_000)] | None = Field(
        default=None,
        description="Position of the route, starting at 1. The default is the last position, which "
        "is also used for larger numbers.",
    )


@make_fields_optional
class RouteChange(NewRoute):
    """Changes to a route."""


class RouteQuery(OffsetQuery):
    """Query parameters for a list of routes, in the order in which routes are applied."""

    order_by: Literal["position"] = "position"
    sort: Literal["asc"] = "asc"
    include_ancestor_groups: IncludeAncestorGroups = False


class DryRunBody(Body):
    """Period of the alerts that the dry run checks."""

    since: RequestTime | None = Field(
        default=None, description="Start of the period. The default is one week before the end."
    )
    until: RequestTime | None = Field(
        default=None, description="End of the period. The default is now."
    )
    days: Annotated[int, Field(ge=1, le=92)] | None = Field(
        default=None, description="Length of the period in days, as an alternative to `since`."
    )


class DryRunPage(Resource):
    """A page that would have been sent."""

    at: Time
    round: int
    step: int
    user: str | None = Field(default=None, description="Username. Null for a channel.")
    channel: str | None = None


class DryRunAlert(Resource):
    """An alert in a dry run, with the pages that would have been sent."""

    iid: int
    project: str = Field(description="Full path of the project.")
    title: str
    opened_at: Time
    route: str | None = Field(description="Name of the route. Null if no route matches.")
    escalation_policy: str | None = Field(
        description="Name of the policy. Null if nobody would have been paged."
    )
    pages: list[DryRunPage]
    notes: list[str] = Field(
        description="Notes, for example about steps that would have paged nobody."
    )


class AlertRouteDryRun(Resource):
    """Pages that the current routes and policies would have sent for past alerts."""

    since: Time
    until: Time
    truncated: bool = Field(
        description="True if the period contains more alerts than a dry run checks."
    )
    alerts: list[DryRunAlert] = Field(description="Alerts in the period, newest first.")

    @property
    def totals(self) -> Sequence[tuple[str, int]]:
        """Number of pages for each user and channel, in descending order."""
        names = (
            f"@{page.user}" if page.user is not None else f"channel {page.channel}"
            for alert in self.alerts
            for page in alert.pages
        )
        return Counter(names).most_common()


class ContactOutcome(Resource):
    """Outcome of a page for one contact."""

    name: str = Field(description="`email`, or the label of the contact.")
    state: MessageState
    at: Time | None = Field(
        description=(
            "Time at which the message was accepted or canceled, or at which it failed. Null while "
            "the message is queued."
        )
    )
    failures: int = Field(description="Number of failed attempts.")
    reason: str | None = Field(
        description="Reason why the last attempt failed. Null if the message was accepted."
    )
    follows_at: Time | None = Field(
        default=None,
        description="Time until which a notification rule of the user delays the message. Null if "
        "the message is not delayed.",
    )


class SentPage(Resource):
    """A page about an alert or incident, with its outcome."""

    id: int
    alert_id: int | None = Field(
        description="ID of the alert. Null if the page is about an incident."
    )
    at: Time = Field(description="Time at which the recipient was paged.")
    name: str = Field(description="Name of the user or channel that was paged.")
    round: int
    step: int = Field(
        description="Number of the step. 0 if the page was not sent by a step of a policy."
    )
    asked_by: str | None = Field(
        description="Name of the user or incident rule that requested the page. Null if the page "
        "was sent by a step of a policy."
    )
    state: PageState | None = Field(
        description="State of the page. Null if its record was deleted."
    )
    contacts: tuple[ContactOutcome, ...]


class AlertPaging(Resource):
    """Paging state of an alert, with its escalation policy, round and next step."""

    state: Annotated[str, build_choices_schema(*EscalationState)] | None = Field(
        description="Paging state. `unprocessed` if the background worker has not processed "
        "the alert yet. Null if the alert never had to page anyone."
    )
    sentence: str = Field(description="Description of the state.")
    waiting_seconds: int | None = Field(
        description="Delay of the background worker for this alert, in seconds. Null if the worker "
        "is on time."
    )
    escalation_policy: str | None = Field(description="Name of the escalation policy.")
    round: int
    next_step: int | None = Field(description="Number of the next step.")
    next_at: Time | None = Field(description="Time at which the next step is due.")
    next_whom: str | None = Field(description="Users and channels that the next step pages.")
    acknowledged_until: Time | None = Field(
        description="Time at which the acknowledgement expires."
    )
    snoozed_until: Time | None
    escalates_at: Time | None = Field(
        description="Time of an escalation that a user has requested on the web page and can still "
        "undo."
    )


class AlertPageBody(Body):
    """User to page about an alert."""

    user: Annotated[RequiredText, Argument("USER")] = Field(
        description="Username of the user to page."
    )


class AlertSnooze(Body):
    """Length of a snooze. Exactly one of the fields is required."""

    duration: Annotated[
        Duration | None,
        Option("--for"),
        Field(description="Length of the snooze, such as `1h`. At most one week."),
    ] = None
    until: RequestTime | None = Field(default=None, description="End of the snooze.")
    tomorrow: Annotated[
        bool,
        Option("--tomorrow"),
        Field(description="True to snooze until 9:00 tomorrow in your time zone."),
    ] = False
