"""The form for a custom member role."""

from collections.abc import Mapping
from typing import ClassVar

from wtforms import SelectField, SelectMultipleField, StringField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.access.abilities import Ability
from domain.access.roles import Role
from domain.projects.member_role_actions import HIGHEST_BASE, LONGEST_DESCRIPTION, LONGEST_NAME
from domain.projects.member_types import NewMemberRole
from forms.base import Form, without_edges


class MemberRoleForm(Form):
    """A role, and what it adds to the one that it is based on."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            DataRequired("Enter a name, such as On-call guest."),
            Length(max=LONGEST_NAME, message=f"A name may have at most {LONGEST_NAME} characters."),
        ],
    )
    description = TextAreaField(
        "Description",
        filters=[without_edges],
        validators=[
            Length(
                max=LONGEST_DESCRIPTION,
                message=f"A description may have at most {LONGEST_DESCRIPTION:,} characters.",
            )
        ],
    )
    base = SelectField(
        "Base role",
        choices=[(role.name, role.label) for role in Role if role <= HIGHEST_BASE],
    )
    permissions = SelectMultipleField(
        "Permissions",
        choices=[(ability.value, ability.value) for ability in Ability],
        validators=[InputRequired("Choose at least one permission.")],
    )

    #: The domain's name of the base role.
    fields_of: ClassVar[Mapping[str, str]] = {"base_access_level": "base"}

    def new_role(self) -> NewMemberRole:
        """Return the role from the form, or raise InvalidParametersError."""
        chosen = dict.fromkeys(self.permissions.data or (), True)
        return self.read(NewMemberRole, base_access_level=self.base.data, **chosen)
