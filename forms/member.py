"""The form that adds a member."""

from typing import Any

from wtforms import SelectField, StringField
from wtforms.validators import InputRequired, Length

from domain.accounts.roles import Role
from forms.base import Form, without_edges


class MemberForm(Form):
    """Who comes in, and with what role."""

    user = StringField(
        "User name or e-mail address",
        filters=[without_edges],
        validators=[
            InputRequired("Enter the user name or e-mail address of whom to add."),
            Length(max=320, message="That is too long for a user name or an address."),
        ],
    )
    role = SelectField("Role", coerce=int, default=int(Role.DEVELOPER))

    def __init__(self, *args: Any, giver: Role, **kwargs: Any) -> None:
        """Take the role of who adds: nobody gives more than they have."""
        super().__init__(*args, **kwargs)
        self.role.choices = [(int(role), role.label) for role in Role if role <= giver]

    @property
    def chosen_role(self) -> Role:
        """The role that was chosen."""
        return Role(self.role.data)
