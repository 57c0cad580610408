"""Forms to add an integration, change it, and replace its key."""

from wtforms import (
    BooleanField,
    HiddenField,
    IntegerField,
    RadioField,
    SelectField,
    StringField,
    TextAreaField,
    URLField,
)
from wtforms.validators import InputRequired, Length, NumberRange, Optional, ValidationError

from domain.accounts.names import LONGEST_NAME
from domain.alerts.formats.registry import FORMATS, INTEGRATION_TYPES
from domain.alerts.integrations.integrations import LONGEST_URL
from domain.alerts.integrations.types import LONGEST_SILENCE, SHORTEST_SILENCE
from domain.grace_period import GracePeriod
from domain.text_links import is_web_url
from forms.base import Form, without_edges


class IntegrationForm(Form):
    """The settings of an integration."""

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
    resolve_after_minutes = IntegerField(
        "Resolve alerts without a report after (minutes)",
        validators=[
            Optional(),
            NumberRange(
                SHORTEST_SILENCE,
                LONGEST_SILENCE,
                message=f"Enter {SHORTEST_SILENCE} to {LONGEST_SILENCE:,} minutes, or nothing for "
                "never.",
            ),
        ],
    )
    active = BooleanField("Active", default=True)

    def validate_api_url(self, field: URLField) -> None:
        """Refuse malformed URLs; the domain decides by the type whether one is required."""
        if field.data and not is_web_url(field.data):
            message = "A URL starts with https:// or http:// and names a host."
            raise ValidationError(message)


class NewIntegrationForm(IntegrationForm):
    """The settings of a new integration with its type, which cannot be changed later."""

    type = SelectField(
        "Type",
        choices=[(each.name, each.label) for each in INTEGRATION_TYPES],
        default=FORMATS[0].name,
    )
    #: A payload of the sender, which the mapping is proposed for.
    sample = HiddenField(id="sample-json")

    @property
    def type_help(self) -> str:
        """What each type takes."""
        return " ".join(each.help for each in INTEGRATION_TYPES)

    @property
    def api_url_help(self) -> str:
        """What the API URL is for, by the types that have one."""
        uses = [f"{each.label}: {each.api_url.help}" for each in INTEGRATION_TYPES if each.api_url]
        return " ".join([*uses, "Other types have none."])

    @property
    def types_that_need_a_url(self) -> str:
        """Their names, separated by spaces."""
        needed = (each for each in INTEGRATION_TYPES if each.api_url and each.api_url.refusal)
        return " ".join(each.name for each in needed)

    @property
    def usual_urls(self) -> dict[str, str]:
        """The usual API URL of each type that has one, or an empty text."""
        return {each.name: each.api_url.usual or "" for each in INTEGRATION_TYPES if each.api_url}


class SampleForm(Form):
    """A payload whose tool is to be recognized."""

    sample = TextAreaField(
        "Payload of your monitoring tool", validators=[InputRequired("Paste a payload.")]
    )


class EndKeyForm(Form):
    """The id of the key that the page showed, since another user may have replaced it."""

    seen = HiddenField()


class ResetKeyForm(EndKeyForm):
    """The grace period for which the old key is accepted beside the new one."""

    overlap = RadioField(
        "How long does the old key stay valid?",
        choices=[(each.key, each.words) for each in GracePeriod],
        default=GracePeriod.NOW.key,
        validators=[InputRequired("Choose how long the old key stays valid.")],
    )

    @property
    def chosen(self) -> GracePeriod:
        """The chosen grace period."""
        return GracePeriod.of(str(self.overlap.data))
