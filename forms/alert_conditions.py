"""The fields of a form that say which alerts something is about."""

from wtforms import SelectMultipleField, StringField
from wtforms.validators import Length

from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.alerts.matching.parser import LONGEST_TEXT
from domain.alerts.reading.incoming import Severity
from forms.base import Form, SomeBody, without_edges

_LONGEST = 2_000
_TOO_LONG = Length(max=_LONGEST, message=f"At most {_LONGEST} characters.")


class ConditionsForm(Form):
    """Conditions on alerts; an empty field takes any."""

    severities = SelectMultipleField(
        "Severities", choices=[(each.value, each.value.capitalize()) for each in Severity]
    )
    environments = StringField("Environments", filters=[without_edges], validators=[_TOO_LONG])
    services = StringField("Services", filters=[without_edges], validators=[_TOO_LONG])
    labels = StringField(
        "Labels",
        filters=[without_edges],
        validators=[
            Length(max=LONGEST_TEXT, message=f"Labels may have at most {LONGEST_TEXT} characters.")
        ],
    )

    @staticmethod
    def values_of(conditions: Conditions) -> dict[str, object]:
        """Return the values of the fields for present conditions."""
        return {
            "severities": list(conditions.severities),
            "environments": ", ".join(conditions.environments),
            "services": ", ".join(conditions.services),
            "labels": conditions.labels_text,
        }

    def entered(self, body: type[SomeBody]) -> SomeBody:
        """Return what was entered as a body with conditions; raise InvalidError."""
        return self.read(body, **self._given())

    def _given(self) -> dict[str, object]:
        return {
            "severities": self.severities.data or [],
            "environments": _names(self.environments.data),
            "services": _names(self.services.data),
            "labels": self.labels.data or "",
        }

    @property
    def names(self) -> dict[str, list[str]]:
        """The names of environments and services, which are separated by commas."""
        environments, services = _names(self.environments.data), _names(self.services.data)
        return {"environments": environments, "services": services}

    @property
    def conditions(self) -> Conditions:
        """The conditions; raises InvalidError."""
        return conditions_from(self._given())


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]
