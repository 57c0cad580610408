"""Forms to add a member and change a role."""

from typing import Any

from wtforms import SelectField, StringField
from wtforms.validators import InputRequired, Length

from domain.accounts.roles import Role
from domain.errors import InvalidError
from forms.base import Form, without_edges


class RoleForm(Form):
    """The role of a member."""

    role = SelectField("Role", coerce=int, default=int(Role.DEVELOPER))

    def __init__(self, *args: Any, giver: Role, **kwargs: Any) -> None:
        """Offer the roles up to that of the current user."""
        super().__init__(*args, **kwargs)
        self.role.choices = [(int(role), role.label) for role in Role if role <= giver]

    @property
    def chosen_role(self) -> Role:
        """The chosen role."""
        return Role(self.role.data)

    def get_role(self) -> Role:
        """Return the role of a submitted form, or raise an error."""
        if not self.validate_on_submit():
            message = "Choose a role from the list."
            raise InvalidError(message, field="role")
        return self.chosen_role


class MemberForm(RoleForm):
    """A new member and their role."""

    user = StringField(
        "User name",
        filters=[without_edges],
        validators=[
            InputRequired("Enter a user name."),
            Length(max=320, message="A user name or e-mail address has at most 320 characters."),
        ],
    )
