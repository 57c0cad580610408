"""The forms that add an integration, change one, and replace its key."""

from wtforms import BooleanField, HiddenField, RadioField, SelectField, StringField, URLField
from wtforms.validators import InputRequired, Length, ValidationError

from domain.accounts.names import LONGEST_NAME
from domain.alerts.integration_type import IntegrationType
from domain.alerts.integrations.integrations import LONGEST_URL, IntegrationDetails
from domain.overlap import Overlap
from domain.text_links import is_web_address
from forms.base import Form, without_edges


class IntegrationForm(Form):
    """What a maintainer may change of an integration."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            Length(max=LONGEST_NAME, message=f"A name may have at most {LONGEST_NAME} characters.")
        ],
    )
    api_url = URLField(
        "API URL",
        filters=[without_edges],
        validators=[
            Length(max=LONGEST_URL, message=f"A URL may have at most {LONGEST_URL} characters.")
        ],
    )
    active = BooleanField("Active", default=True)

    def validate_api_url(self, field: URLField) -> None:
        """Refuse what is no address on the web; whether there must be one the type decides."""
        if field.data and not is_web_address(field.data):
            message = "A URL starts with https:// or http:// and names a host."
            raise ValidationError(message)

    @property
    def details(self) -> IntegrationDetails:
        """What was chosen."""
        return IntegrationDetails(
            name=self.name.data or "", active=self.active.data, api_url=self.api_url.data or None
        )


class NewIntegrationForm(IntegrationForm):
    """The same with the type, which is chosen once."""

    type = SelectField(
        "Type",
        choices=[(kind.value, kind.label) for kind in IntegrationType],
        default=IntegrationType.HTTP.value,
    )


class EndKeyForm(Form):
    """Which key the page showed: two people may be at work."""

    seen = HiddenField()


class ResetKeyForm(EndKeyForm):
    """How long the old key stays good beside the new one."""

    overlap = RadioField(
        "How long may the old key still be used?",
        choices=[(each.key, each.words) for each in Overlap],
        default=Overlap.NOW.key,
        validators=[InputRequired("Choose how long the old key may still be used.")],
    )

    @property
    def chosen(self) -> Overlap:
        """What was chosen."""
        return Overlap.of(str(self.overlap.data))
