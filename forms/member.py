"""The forms that add a member and change a role."""

from typing import Any

from wtforms import SelectField, StringField
from wtforms.validators import InputRequired, Length

from domain.accounts.roles import Role
from domain.errors import InvalidError
from forms.base import Form, without_edges


class RoleForm(Form):
    """What role somebody has."""

    role = SelectField("Role", coerce=int, default=int(Role.DEVELOPER))

    def __init__(self, *args: Any, giver: Role, **kwargs: Any) -> None:
        """Take the role of who gives it: nobody gives more than they have."""
        super().__init__(*args, **kwargs)
        self.role.choices = [(int(role), role.label) for role in Role if role <= giver]

    @property
    def chosen_role(self) -> Role:
        """The role that was chosen."""
        return Role(self.role.data)

    def get_role(self) -> Role:
        """Return the role of a form that is nothing but a list to choose from, or raise."""
        if not self.validate_on_submit():
            message = "Choose one of the roles in the list."
            raise InvalidError(message, field="role")
        return self.chosen_role


class MemberForm(RoleForm):
    """Who comes in, and with what role."""

    user = StringField(
        "User name",
        filters=[without_edges],
        validators=[
            InputRequired("Enter the user name of whom to add."),
            Length(max=320, message="That is too long for a user name or an address."),
        ],
    )
