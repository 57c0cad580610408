"""The form that creates a personal access token."""

from wtforms import DateField, SelectMultipleField, StringField
from wtforms.validators import InputRequired, Length, Optional

from domain.oauth.personal_tokens import LONGEST_NAME, PERSONAL_SCOPES
from domain.oauth.scopes import BY_NAME
from forms.base import Form, without_edges


class DayField(DateField):
    """A date that says how it is written when it is written otherwise."""

    def gettext(self, string: str) -> str:
        """Say it in our words; the only sentence of a date field is that it cannot be read."""
        del string
        return "Write the day like 2027-05-31."


class AccessTokenForm(Form):
    """What a user chooses of a token."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            InputRequired("Give the token a name that says what it is for."),
            Length(max=LONGEST_NAME, message=f"A name may have at most {LONGEST_NAME} characters."),
        ],
    )
    expires_at = DayField("Expires on", validators=[Optional()])
    scopes = SelectMultipleField(
        "Scopes",
        choices=[(name, BY_NAME[name].title) for name in PERSONAL_SCOPES],
        validators=[InputRequired("Choose at least one scope.")],
    )
