"""The forms that add an integration and change one."""

from wtforms import BooleanField, SelectField, StringField, URLField
from wtforms.validators import Length, ValidationError

from domain.alerts.integrations import IntegrationType
from domain.text_links import is_web_address
from forms.base import Form, without_edges


class IntegrationForm(Form):
    """What a maintainer may change of an integration."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[Length(max=100, message="A name may have at most 100 characters.")],
    )
    api_url = URLField(
        "API URL",
        filters=[without_edges],
        validators=[Length(max=2000, message="A URL may have at most 2000 characters.")],
    )
    active = BooleanField("Active", default=True)

    def validate_api_url(self, field: URLField) -> None:
        """Refuse what is no address on the web; nothing at all is fine here."""
        if field.data and not is_web_address(field.data):
            message = "A URL starts with https:// or http:// and names a host."
            raise ValidationError(message)


class NewIntegrationForm(IntegrationForm):
    """The same with the type, which is chosen once."""

    type = SelectField(
        "Type",
        choices=[(kind.value, kind.label) for kind in IntegrationType],
        default=IntegrationType.HTTP.value,
    )
