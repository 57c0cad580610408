"""The form of a route of alerts."""

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from wtforms import SelectField, SelectMultipleField, StringField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.alerts.reading.incoming import Severity
from domain.escalations.types import LONGEST_NAME, AlertRoute, EscalationPolicy, NewRoute
from forms.base import Form, without_edges

NOBODY = "nobody"
Route = TypeVar("Route", bound=NewRoute)


class AlertRouteForm(Form):
    """Which alerts a route is about, and where they go."""

    fields_of: ClassVar = {"escalation_policy_id": "policy"}

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

    def offer(self, policies: Sequence[EscalationPolicy]) -> "AlertRouteForm":
        """Set the policies to choose from, and return the form."""
        self.policy.choices = [
            *((str(each.id), each.name) for each in policies),
            (NOBODY, "Nobody: page no one"),
        ]
        return self

    def route(self, body: type[Route]) -> Route:
        """Return what was entered; raise InvalidError."""
        chosen = self.policy.data
        return self.read(
            body,
            environments=_lines(self.environments.data),
            services=_lines(self.services.data),
            labels=self.labels.data or [],
            escalation_policy_id=None if chosen == NOBODY else chosen,
        )


def _lines(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


def form_for(route: AlertRoute) -> AlertRouteForm:
    """Return the form filled with what a route has, for a request that sends none."""
    return AlertRouteForm(
        data={
            "name": route.name,
            "severities": route.severities,
            "environments": "\n".join(route.environments),
            "services": "\n".join(route.services),
            "labels": "\n".join(route.labels),
            "policy": str(route.escalation_policy_id or NOBODY),
        }
    )
