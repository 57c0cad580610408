"""Forms for members, invitations and custom member roles."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from wtforms import SelectField, SelectMultipleField
from wtforms.validators import DataRequired, InputRequired

from domain.access.roles import Ability, Role
from domain.core.errors import InvalidError
from domain.projects.member_roles import MAX_BASE_ROLE, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH
from domain.projects.member_types import MemberRole, NewInvitations, NewMemberRole, NewMembers
from domain.projects.views import MemberView
from forms.base import Form, TextLineField, TextLinesField, limit_length


def _build_choice_value(role: Role, custom_role_id: int | None) -> str:
    """Return the value of a choice: the number of a role, or the ID of a custom role."""
    return str(int(role)) if custom_role_id is None else f"custom-{custom_role_id}"


def _list_grantable_role_choices(giver: Role) -> list[tuple[str, str]]:
    """Return the role choices for a user who can grant roles up to `giver`."""
    return [(_build_choice_value(role, None), role.label) for role in Role if role <= giver]


class RoleForm(Form):
    """The form for the standard or custom role of a member."""

    role = SelectField("Role", coerce=str.strip, default=_build_choice_value(Role.DEVELOPER, None))

    def __init__(
        self, *args: Any, giver: Role, custom_roles: Sequence[MemberRole], **kwargs: Any
    ) -> None:
        """Offer the roles up to the current user's role, and the custom roles based on them."""
        super().__init__(*args, **kwargs)
        self._custom = {_build_choice_value(each.base_role, each.id): each for each in custom_roles}
        own = _list_grantable_role_choices(giver)
        others = [
            (value, f"{each.name} ({each.base_role.label})")
            for value, each in self._custom.items()
            if each.base_role <= giver
        ]
        self._groups = {"Roles": own, "Custom roles": others} if others else {"": own}
        self.role.choices = self._groups if others else own

    @property
    def chosen_custom_role(self) -> MemberRole | None:
        """Selected custom role, or None if a standard role is selected."""
        return self._custom.get(self.role.data)

    @property
    def chosen_role(self) -> Role:
        """Selected role, or the base role of the selected custom role."""
        custom = self.chosen_custom_role
        return custom.base_role if custom else Role(int(self.role.data))

    def get_validated_role(self) -> Role:
        """Return the role selected in a submitted form.

        Raise InvalidError if no valid role is selected.
        """
        if not self.validate_on_submit():
            raise InvalidError("Choose a role from the list.", field="role")
        return self.chosen_role

    def list_role_choices(
        self, member: MemberView
    ) -> list[tuple[str, list[tuple[str, str, bool]]]]:
        """Return the grouped role choices for a direct member.

        Each choice consists of a value, a label, and a flag that is true if the choice is selected.
        """
        custom = member.own_custom_role
        theirs = _build_choice_value(member.own_role or member.role, custom.id if custom else None)
        return [
            (label, [(value, text, value == theirs) for value, text in choices])
            for label, choices in self._groups.items()
        ]


class MemberForm(RoleForm):
    """The form that adds a user as a member with a role."""

    user = TextLineField(
        "Username",
        DataRequired("Enter a username."),
        limit_length(320, "A username or email address"),
    )
    #: Names of form fields, by the domain's name for the value.
    fields_of: ClassVar[Mapping[str, str]] = {
        "username": "user",
        "access_level": "role",
        "member_role_id": "role",
    }

    def build_member(self) -> NewMembers:
        """Return the entered username and the selected role as a request body."""
        custom = self.chosen_custom_role
        return NewMembers(
            # The text is not split at commas, since only one member is added.
            username=(self.user.data or "",),
            access_level=self.chosen_role,
            member_role_id=custom.id if custom else None,
        )


class InvitationForm(Form):
    """The form that invites people by email and selects their role."""

    email = TextLinesField(
        "Email addresses",
        DataRequired("Enter at least one email address."),
        limit_length(20_000, "The list of addresses"),
    )
    invited_role = SelectField("Role", default=_build_choice_value(Role.DEVELOPER, None))
    #: Names of form fields, by the domain's name for the value.
    fields_of: ClassVar[Mapping[str, str]] = {"access_level": "invited_role"}

    def __init__(self, *args: Any, giver: Role, **kwargs: Any) -> None:
        """Offer the roles up to the current user's role."""
        super().__init__(*args, **kwargs)
        self.invited_role.choices = _list_grantable_role_choices(giver)

    def build_invitations(self) -> NewInvitations:
        """Return the entered addresses with the chosen role.

        Raise InvalidParametersError if the form contains no addresses or too many addresses.
        """
        return self.build_entered_body(
            NewInvitations, email=self.email.data, access_level=self.invited_role.data
        )

    def show_rejections(self, problems: Mapping[str, str]) -> None:
        """Keep only the addresses that were not invited, and show the reasons."""
        self.email.data = "\n".join(problems)
        for address, reason in problems.items():
            self.add_error("email", reason if address in reason else f"{address}: {reason}")


class ShareForm(Form):
    """The form that shares a project with a group, up to a maximum role."""

    group = TextLineField("Group", DataRequired("Enter the full path of a group."))
    most = SelectField("Highest role", default=_build_choice_value(Role.DEVELOPER, None))
    #: Names of form fields, by the domain's name for the value.
    fields_of: ClassVar[Mapping[str, str]] = {
        "group_id": "group",
        "group_access": "most",
        "role": "most",
    }

    def __init__(self, *args: Any, giver: Role, **kwargs: Any) -> None:
        """Offer the roles up to the current user's role."""
        super().__init__(*args, **kwargs)
        self.most.choices = _list_grantable_role_choices(giver)


class MemberRoleForm(Form):
    """The form for a custom role: its base role and its additional permissions."""

    name = TextLineField(
        "Name",
        DataRequired("Enter a name, such as On-call guest."),
        limit_length(MAX_NAME_LENGTH, "A name"),
    )
    description = TextLinesField(
        "Description", limit_length(MAX_DESCRIPTION_LENGTH, "A description")
    )
    base = SelectField(
        "Base role",
        choices=[(role.name, role.label) for role in Role if role <= MAX_BASE_ROLE],
    )
    permissions = SelectMultipleField(
        "Permissions",
        choices=[(ability.value, ability.value) for ability in Ability],
        validators=[InputRequired("Choose at least one permission.")],
    )

    #: Name of the form field for the base role.
    fields_of: ClassVar[Mapping[str, str]] = {"base_access_level": "base"}

    def build_role(self) -> NewMemberRole:
        """Return the entered values as the request body for a new custom role.

        Raise InvalidParametersError for invalid values.
        """
        chosen = dict.fromkeys(self.permissions.data or (), True)
        return self.build_entered_body(NewMemberRole, base_access_level=self.base.data, **chosen)
