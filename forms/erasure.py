"""The form to delete an account, for administrators."""

from wtforms import RadioField, StringField
from wtforms.validators import DataRequired, Optional

from forms.base import Form, without_edges

HAND_ON, DELETE = "hand_on", "delete"


class ErasureForm(Form):
    """The user name as confirmation, and what to do with the applications."""

    applications = RadioField(
        "Applications",
        choices=[(HAND_ON, "Transfer to a new owner"), (DELETE, "Delete")],
        default=HAND_ON,
        validators=[Optional()],
    )
    heir = StringField("New owner", filters=[without_edges])
    confirmation = StringField(
        "User name",
        filters=[without_edges],
        validators=[DataRequired("Enter the user name to confirm.")],
    )

    @property
    def heir_name(self) -> str:
        """The new owner of the applications; empty if they are deleted."""
        return (self.heir.data or "") if self.applications.data == HAND_ON else ""
