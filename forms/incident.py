"""Forms of incidents and of the rules that open them."""

from typing import Any

from wtforms import BooleanField, SelectField, SelectMultipleField, StringField, TextAreaField
from wtforms.validators import DataRequired, Length

from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.incidents.composing import LONGEST_DESCRIPTION, LONGEST_TITLE
from domain.incidents.rules import LONGEST_NAME, RuleValues, RuleView
from forms.base import Form, without_edges

_SEVERITIES = [(each.value, each.value.capitalize()) for each in SEVERITIES]


class IncidentForm(Form):
    """The words of an incident."""

    title = StringField(
        "Title",
        filters=[without_edges],
        validators=[
            DataRequired("Enter a title, such as Checkout is down."),
            Length(max=LONGEST_TITLE, message="A title may have at most 255 characters."),
        ],
    )
    description = TextAreaField(
        "Description",
        validators=[
            Length(
                max=LONGEST_DESCRIPTION,
                message=f"A description may have at most {LONGEST_DESCRIPTION:,} characters.",
            )
        ],
    )
    severity = SelectField("Severity", choices=_SEVERITIES, default="unknown")
    close_when_resolved = BooleanField("Close it when all of its alerts are resolved")


class IncidentRuleForm(Form):
    """A rule: which alerts open an incident."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            DataRequired("Enter a name, such as Production."),
            Length(max=LONGEST_NAME, message="A name may have at most 255 characters."),
        ],
    )
    severities = SelectMultipleField("Severities", choices=_SEVERITIES)
    environments = StringField("Environments", filters=[without_edges])
    services = StringField("Services", filters=[without_edges])
    labels = StringField("Labels", filters=[without_edges])
    close_when_resolved = BooleanField("Close its incidents when all of their alerts are resolved")
    open_when_silenced = BooleanField(
        "Open incidents for silenced alerts too, and during maintenance windows"
    )

    @classmethod
    def of(cls, rule: RuleView) -> "IncidentRuleForm":
        """Return the form of a rule, or what was sent of it."""
        conditions = rule.conditions
        return cls(
            data={
                "name": rule.name,
                "severities": list(conditions.severities),
                "environments": ", ".join(conditions.environments),
                "services": ", ".join(conditions.services),
                "labels": conditions.labels_text,
                "close_when_resolved": rule.closes_when_resolved,
                "open_when_silenced": rule.opens_when_silenced,
            }
        )

    @property
    def values(self) -> RuleValues:
        """What the rule is made of; raises InvalidError."""
        return RuleValues(
            name=self.name.data or "",
            conditions=self._conditions(),
            closes_when_resolved=bool(self.close_when_resolved.data),
            opens_when_silenced=bool(self.open_when_silenced.data),
        )

    def _conditions(self) -> Conditions:
        return conditions_from(
            {
                "severities": list(self.severities.data or ()),
                "environments": _names(self.environments.data),
                "services": _names(self.services.data),
                "labels": self.labels.data or "",
            }
        )


def _names(text: Any) -> list[str]:
    return [name for each in (text or "").split(",") if (name := each.strip())]
