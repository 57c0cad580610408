"""The form of a route of alerts."""

from collections.abc import Sequence

from wtforms import SelectField, SelectMultipleField, StringField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.alerts.reading.incoming import Severity
from domain.escalations.policies import PolicyView
from domain.escalations.routes import LONGEST_NAME, RouteDraft, RouteView
from forms.base import Form, without_edges

NOBODY = "nobody"


class AlertRouteForm(Form):
    """Which alerts a route is about, and where they go."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            DataRequired("Enter a name, such as Production."),
            Length(max=LONGEST_NAME, message="A name may have at most 255 characters."),
        ],
    )
    severities = SelectMultipleField(
        "Severities", choices=[(each.value, each.value.capitalize()) for each in Severity]
    )
    environments = TextAreaField("Environments")
    services = TextAreaField("Services")
    labels = TextAreaField("Labels", filters=[without_edges])
    policy = SelectField("Escalation policy", validators=[InputRequired("Choose a policy.")])

    def offer(self, policies: Sequence[PolicyView]) -> "AlertRouteForm":
        """Set the policies to choose from, and return the form."""
        self.policy.choices = [
            *((str(each.id), each.name) for each in policies),
            (NOBODY, "Nobody: page no one"),
        ]
        return self

    @property
    def conditions(self) -> Conditions:
        """The conditions; raises InvalidError."""
        return conditions_from(
            {
                "severities": self.severities.data or [],
                "environments": _lines(self.environments.data),
                "services": _lines(self.services.data),
                "labels": self.labels.data or None,
            }
        )

    @property
    def draft(self) -> RouteDraft:
        """What was entered; raises InvalidError."""
        chosen = self.policy.data
        return RouteDraft(
            name=self.name.data or "",
            conditions=self.conditions,
            policy_id=None if chosen == NOBODY else int(chosen),
        )


def _lines(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


def form_for(route: RouteView) -> AlertRouteForm:
    """Return the form filled with what a route has, for a request that sends none."""
    conditions = route.conditions
    return AlertRouteForm(
        data={
            "name": route.name,
            "severities": list(conditions.severities),
            "environments": "\n".join(conditions.environments),
            "services": "\n".join(conditions.services),
            "labels": conditions.labels_text,
            "policy": str(route.policy_id) if route.policy_id else NOBODY,
        }
    )
