"""Forms for destinations: of the audit log, and what all kinds share."""

from wtforms import RadioField, StringField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.grace_period import GracePeriod
from forms.base import Form, without_edges


class AuditStreamForm(Form):
    """The URL of a destination."""

    url = StringField(
        "URL",
        filters=[without_edges],
        validators=[
            DataRequired("Enter the URL that events are sent to."),
            Length(max=2_000, message="A URL may have at most 2000 characters."),
        ],
    )


class SecretRotationForm(Form):
    """How long the old secret also signs."""

    overlap = RadioField(
        "How long does the old secret also sign?",
        choices=[(each.key, each.words) for each in GracePeriod],
        default=GracePeriod.DAY.key,
        validators=[InputRequired("Choose how long the old secret also signs.")],
    )
