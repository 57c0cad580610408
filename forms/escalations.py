"""Forms for escalation policies and alert routes."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

from wtforms import (
    BooleanField,
    FieldList,
    FormField,
    IntegerField,
    SelectField,
    SelectMultipleField,
    TextAreaField,
)
from wtforms import Form as PlainForm
from wtforms.validators import DataRequired, InputRequired, NumberRange, Optional

from domain.core.durations import parse_duration
from domain.core.errors import InvalidError
from domain.paging.escalations.policy_steps import (
    DEFAULT_REPEAT_PAUSE,
    MAX_REPEATS,
    MAX_STEPS,
    MAX_TARGETS,
    TargetKind,
)
from domain.paging.escalations.types import (
    MAX_POLICY_NAME_LENGTH,
    AlertRoute,
    EscalationPolicy,
    NewPolicy,
    NewRoute,
)
from forms.alerts import SEVERITY_CHOICES
from forms.base import (
    DurationField,
    Form,
    TextLineField,
    TextLinesField,
    check_duration,
    limit_length,
    split_lines,
)

_DEFAULT_REPEATS = 2
PolicyBody = TypeVar("PolicyBody", bound=NewPolicy)


class StepForm(PlainForm):
    """The fields for the delay and the targets of an escalation step."""

    after = DurationField("Delay", DataRequired("Enter a delay."), check_duration, default="0s")
    #: Targets such as `user:7`, or empty. The choices depend on the project.
    targets = FieldList(SelectField("Page", choices=[], validate_choice=False), min_entries=1)
    round_robin = BooleanField("Round-robin: each new alert pages only the next target")

    @property
    def entered_step(self) -> dict[str, object]:
        """The entered step in the format of the API.

        Raise InvalidError for invalid targets.
        """
        targets = dict.fromkeys(each for each in self.targets.data if each)
        return {
            "delay": self.after.data or "",
            "targets": [parse_selected_target(each, "steps") for each in targets],
            "round_robin": self.round_robin.data,
        }


def parse_selected_target(text: str, field: str) -> dict[str, object]:
    """Return the selected target in the format of the API.

    Raise InvalidError if the text is not a target.
    """
    kind, _, number = text.partition(":")
    if kind not in set(TargetKind) or not (number.isascii() and number.isdecimal()):
        raise InvalidError("Choose who is paged from the list.", field=field)
    return {"type": kind, "id": int(number[:18])}


class EscalationPolicyForm(Form):
    """The form for the name, steps and repeats of an escalation policy."""

    name = TextLineField(
        "Name",
        DataRequired("Enter a name, such as Night."),
        limit_length(MAX_POLICY_NAME_LENGTH, "A name"),
    )
    steps = FieldList(FormField(StepForm), min_entries=1, max_entries=MAX_STEPS)
    repeats = IntegerField(
        "Repeats",
        default=_DEFAULT_REPEATS,
        validators=[
            InputRequired("Enter the number of repeats. Enter 0 for none."),
            NumberRange(0, MAX_REPEATS, message=f"Enter a number from 0 to {MAX_REPEATS}."),
        ],
    )
    repeat_pause = DurationField(
        "Pause before a repeat",
        DataRequired("Enter a pause, such as 5m."),
        check_duration,
        default=DEFAULT_REPEAT_PAUSE,
    )
    acknowledgement_timeout = DurationField("Acknowledgement timeout", Optional(), check_duration)
    retrigger_when_critical = BooleanField("Trigger again when critical", default=True)
    is_default = BooleanField("Default policy")

    def build_policy(self, body: type[PolicyBody]) -> PolicyBody:
        """Return the entered policy as a request body of the given type.

        Raise InvalidError for invalid values.
        """
        steps = [entry.form.entered_step for entry in self.steps]
        for number, step in enumerate(steps, 1):
            if not step["targets"]:
                message = f"Step {number}: choose between 1 and {MAX_TARGETS} targets."
                raise InvalidError(message, field="steps")
        return self.build_entered_body(
            body,
            steps=steps,
            acknowledgement_timeout=self.acknowledgement_timeout.data or None,
            retrigger_when_critical=bool(self.retrigger_when_critical.data),
            default=bool(self.is_default.data),
        )

    def apply_row_action(self, action: str) -> "EscalationPolicyForm":
        """Apply an action such as `add_step`, `remove_step:1` or `add_target:1` to the form.

        Steps are numbered from 0.
        """
        kind, _, number = action.partition(":")
        values = {**self.data}
        steps = [
            {**each, "targets": [text for text in each["targets"] if text]}
            for each in self.steps.data[:MAX_STEPS]
        ]
        index = {str(place): place for place in range(MAX_STEPS)}.get(number, -1)
        if kind == "add_step" and len(steps) < MAX_STEPS:
            steps.append({"after": _compute_next_delay(steps), "targets": []})
        elif kind == "remove_step" and 0 <= index < len(steps) and len(steps) > 1:
            del steps[index]
        values["steps"] = [
            _add_empty_target(each, has_more=kind == "add_target" and place == index)
            for place, each in enumerate(steps)
        ]
        return EscalationPolicyForm(formdata=None, data=values)


def _compute_next_delay(steps: Sequence[dict[str, Any]]) -> timedelta:
    """Return the default delay of a new step: five minutes after the last step."""
    try:
        return parse_duration(steps[-1]["after"] or "") + DEFAULT_REPEAT_PAUSE
    except (IndexError, InvalidError):
        return DEFAULT_REPEAT_PAUSE


def _add_empty_target(step: dict[str, Any], *, has_more: bool) -> dict[str, Any]:
    """Add an empty choice to a step if it has no target, or if a target is being added."""
    targets = step["targets"]
    is_room = (has_more or not targets) and len(targets) < MAX_TARGETS
    return {**step, "targets": [*targets, ""] if is_room else targets}


def build_policy_form(policy: EscalationPolicy) -> EscalationPolicyForm:
    """Return the form with the submitted values, if any, or the values of a policy."""
    return EscalationPolicyForm(
        data={
            "name": policy.name,
            "steps": [
                {
                    "after": step.after,
                    "targets": [each.form_value for each in step.targets],
                    "round_robin": step.round_robin,
                }
                for step in policy.steps
            ],
            "repeats": policy.repeats,
            "repeat_pause": policy.plan.pause,
            "acknowledgement_timeout": policy.plan.timeout,
            "retrigger_when_critical": policy.retrigger_when_critical,
            "is_default": policy.default,
        }
    )


NOBODY_CHOICE = "nobody"
RouteBody = TypeVar("RouteBody", bound=NewRoute)


class AlertRouteForm(Form):
    """The form for the conditions of an alert route and its policy."""

    fields_of: ClassVar = {"escalation_policy_id": "policy"}

    name = TextLineField(
        "Name",
        DataRequired("Enter a name, such as Production."),
        limit_length(MAX_POLICY_NAME_LENGTH, "A name"),
    )
    severities = SelectMultipleField("Severities", choices=SEVERITY_CHOICES)
    environments = TextAreaField("Environments")
    services = TextAreaField("Services")
    labels = TextLinesField("Labels")
    policy = SelectField("Escalation policy", validators=[InputRequired("Choose a policy.")])

    def set_policy_choices(self, policies: Sequence[EscalationPolicy]) -> "AlertRouteForm":
        """Set the policies that can be selected, and return the form."""
        self.policy.choices = [
            *(
                (str(each.id), f"{each.name} (from {each.group})" if each.group else each.name)
                for each in policies
            ),
            (NOBODY_CHOICE, "Do not page anyone"),
        ]
        return self

    def build_route(self, body: type[RouteBody]) -> RouteBody:
        """Return the entered route as a request body of the given type.

        Raise InvalidError for invalid values.
        """
        chosen = self.policy.data
        return self.build_entered_body(
            body,
            environments=split_lines(self.environments.data),
            services=split_lines(self.services.data),
            labels=self.labels.data or [],
            escalation_policy_id=None if chosen == NOBODY_CHOICE else chosen,
        )


def build_route_form(route: AlertRoute) -> AlertRouteForm:
    """Return the form with the submitted values, if any, or the values of a route."""
    return AlertRouteForm(
        data={
            "name": route.name,
            "severities": route.severities,
            "environments": "\n".join(route.environments),
            "services": "\n".join(route.services),
            "labels": "\n".join(route.labels),
            "policy": str(route.escalation_policy_id or NOBODY_CHOICE),
        }
    )
