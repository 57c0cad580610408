"""The form that maps keys of a payload to fields of an alert."""

from collections.abc import Mapping, Sequence

from wtforms import HiddenField, SelectMultipleField, TextAreaField
from wtforms.validators import InputRequired

from domain.alerts.reading.mapping import AlertField
from forms.base import Form


class MappingForm(Form):
    """A sample, and for each field of an alert its path and fallback path."""

    sample = TextAreaField(
        "Sample payload (JSON)", validators=[InputRequired("Paste a sample payload.")]
    )
    #: The digest of the sample that the choices were made for.
    mapped_for = HiddenField()

    @property
    def chosen(self) -> Mapping[AlertField, Sequence[str]]:
        """The chosen paths by field, blank ones included."""
        return {field: self[f"map_{field.value}"].data or () for field in AlertField}


for _alert_field in AlertField:
    # Two drop-downs with the same name; their choices depend on the sample.
    setattr(
        MappingForm,
        f"map_{_alert_field.value}",
        SelectMultipleField(choices=[], validate_choice=False),
    )
