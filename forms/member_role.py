"""The form for a custom member role."""

from wtforms import SelectField, SelectMultipleField, StringField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.access.abilities import Ability
from domain.access.roles import Role
from domain.projects.member_roles import (
    HIGHEST_BASE,
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    MemberRoleDetails,
)
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

    @property
    def details(self) -> MemberRoleDetails:
        """The role from the form."""
        return MemberRoleDetails(
            name=self.name.data or "",
            description=self.description.data or "",
            base=Role[self.base.data],
            abilities=frozenset(Ability(each) for each in self.permissions.data or ()),
        )
