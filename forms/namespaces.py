"""Forms to rename, move and delete a group or project."""

from typing import Any

from wtforms import StringField, TextAreaField
from wtforms.validators import DataRequired, Length

from domain.accounts.names import LONGEST_NAME, LONGEST_PATH
from domain.projects.editing import LONGEST_DESCRIPTION
from domain.projects.views import GroupView
from forms.base import Form, without_edges


def with_plain_breaks(value: Any) -> Any:
    """Return a text with the line breaks that it was stored with: browsers send others."""
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else value


class NameAndDescription(Form):
    """How a group or project is called, and what it is."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            DataRequired("Enter a name."),
            Length(max=LONGEST_NAME, message=f"A name may have at most {LONGEST_NAME} characters."),
        ],
    )
    description = TextAreaField(
        "Description",
        filters=[with_plain_breaks],
        validators=[
            Length(
                max=LONGEST_DESCRIPTION,
                message=f"A description may have at most {LONGEST_DESCRIPTION:,} characters.",
            )
        ],
    )


class GroupSettingsForm(NameAndDescription):
    """Name and description of a group."""

    @classmethod
    def of(cls, group: GroupView) -> "GroupSettingsForm":
        """Return the form with the present values of a group, or those of the request."""
        return cls(name=group.name, description=group.description)


class PathForm(Form):
    """The last part of the path of a group or project."""

    path = StringField("Path", filters=[without_edges], validators=[DataRequired("Enter a path.")])


class ConfirmationForm(Form):
    """The full path of what is moved or deleted."""

    confirmation = StringField(
        "Full path",
        filters=[without_edges],
        validators=[DataRequired("Enter the full path to confirm.")],
    )

    def confirms(self, path: str) -> bool:
        """Return whether the path was entered; another one gets an error."""
        if (self.confirmation.data or "").strip("/").lower() == path.lower():
            return True
        self.object_to("confirmation", f"This is not the path {path}.")
        return False


class TransferForm(ConfirmationForm):
    """Where a group or project moves to."""

    to = StringField(
        "New group",
        filters=[lambda value: value.strip().strip("/") if isinstance(value, str) else value],
        validators=[
            Length(max=LONGEST_PATH, message=f"A path may have at most {LONGEST_PATH} characters.")
        ],
    )
