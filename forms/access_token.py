"""Forms for new access tokens of users, projects and groups."""

from typing import Any, ClassVar

from wtforms import DateField, SelectField, SelectMultipleField
from wtforms.validators import DataRequired, InputRequired, Optional

from domain.access.roles import Role
from domain.access.scopes import BY_NAME
from domain.oauth.personal_tokens.tokens import LONGEST_DESCRIPTION, LONGEST_NAME, PERSONAL_SCOPES
from forms.base import Form, Line, at_most


class DayField(DateField):
    """A date field with an error message that describes the format."""

    def gettext(self, string: str) -> str:
        """Replace the only message of a date field."""
        del string
        return "Enter a date such as 2027-05-31."


class AccessTokenForm(Form):
    """The form for a new personal access token."""

    name = Line(
        "Name",
        DataRequired("Enter a name that describes the purpose of the token."),
        at_most(LONGEST_NAME, "A name"),
    )
    description = Line("Description", at_most(LONGEST_DESCRIPTION, "A description"))
    expires_at = DayField("Expires on", validators=[Optional()])
    scopes = SelectMultipleField(
        "Scopes",
        choices=[(name, BY_NAME[name].title) for name in PERSONAL_SCOPES],
        validators=[InputRequired("Choose at least one scope.")],
    )


class ResourceTokenForm(AccessTokenForm):
    """The form for a new project or group access token, which also has a role."""

    fields_of: ClassVar = {"access_level": "role"}

    role = SelectField("Role", coerce=int, default=int(Role.DEVELOPER))

    def __init__(self, *args: Any, granted_by: Role, **kwargs: Any) -> None:
        """Offer the roles up to the role of the current user."""
        super().__init__(*args, **kwargs)
        self.role.choices = [(int(role), role.label) for role in Role if role <= granted_by]
