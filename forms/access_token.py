"""Forms for new access tokens of users, projects and groups."""

from typing import Any, ClassVar

from wtforms import DateField, SelectField, SelectMultipleField
from wtforms.validators import DataRequired, InputRequired, Optional

from domain.access.roles import Role
from domain.access.scopes import SCOPES_BY_NAME
from domain.oauth.personal_tokens.tokens import (
    MAX_TOKEN_DESCRIPTION_LENGTH,
    MAX_TOKEN_NAME_LENGTH,
    PERSONAL_SCOPES,
)
from forms.base import Form, TextLineField, limit_length


class DateWithHintField(DateField):
    """A date field with an error message that describes the format."""

    def gettext(self, string: str) -> str:
        """Return the error message of the date field, which replaces the default message."""
        del string
        return "Enter a date such as 2027-05-31."


class AccessTokenForm(Form):
    """The form for the name, description, expiry date and scopes of a new personal access token."""

    name = TextLineField(
        "Name",
        DataRequired("Enter a name that describes the purpose of the token."),
        limit_length(MAX_TOKEN_NAME_LENGTH, "A name"),
    )
    description = TextLineField(
        "Description", limit_length(MAX_TOKEN_DESCRIPTION_LENGTH, "A description")
    )
    expires_at = DateWithHintField("Expires on", validators=[Optional()])
    scopes = SelectMultipleField(
        "Scopes",
        choices=[(name, SCOPES_BY_NAME[name].title) for name in PERSONAL_SCOPES],
        validators=[InputRequired("Choose at least one scope.")],
    )


class ResourceTokenForm(AccessTokenForm):
    """The form for a new project or group access token, with the role of the token."""

    fields_of: ClassVar = {"access_level": "role"}

    role = SelectField("Role", coerce=int, default=int(Role.DEVELOPER))

    def __init__(self, *args: Any, granted_by: Role, **kwargs: Any) -> None:
        """Offer the roles up to the role of the current user."""
        super().__init__(*args, **kwargs)
        self.role.choices = [(int(role), role.label) for role in Role if role <= granted_by]
