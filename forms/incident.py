"""Forms of incidents and of the rules that open them."""

from wtforms import BooleanField, SelectField, StringField, TextAreaField
from wtforms.validators import DataRequired, Length

from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.matching.conditions import conditions_from
from domain.incidents.composing import LONGEST_DESCRIPTION, LONGEST_TITLE
from domain.incidents.types import LONGEST_RULE_NAME, IncidentRule
from forms.alert_conditions import ConditionsForm
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


class IncidentRuleForm(ConditionsForm):
    """A rule: which alerts open an incident."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            DataRequired("Enter a name, such as Production."),
            Length(max=LONGEST_RULE_NAME, message="A name may have at most 255 characters."),
        ],
    )
    close_when_resolved = BooleanField("Close its incidents when all of their alerts are resolved")
    open_when_silenced = BooleanField(
        "Open incidents for silenced alerts too, and during maintenance windows"
    )

    @classmethod
    def of(cls, rule: IncidentRule) -> "IncidentRuleForm":
        """Return the form of a rule, or what was sent of it."""
        return cls(data={**dict(rule), **cls.values_of(conditions_from(dict(rule)))})
