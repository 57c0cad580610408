"""The form by which an administrator deletes an account."""

from wtforms import RadioField, StringField
from wtforms.validators import InputRequired, Optional

from forms.base import Form, without_edges

HAND_ON, DELETE = "hand_on", "delete"


class ErasureForm(Form):
    """Whose account goes, and what becomes of their applications."""

    applications = RadioField(
        "Applications",
        choices=[(HAND_ON, "Hand them on"), (DELETE, "Delete them")],
        default=HAND_ON,
        validators=[Optional()],
    )
    heir = StringField("New owner", filters=[without_edges])
    confirmation = StringField(
        "User name",
        filters=[without_edges],
        validators=[InputRequired("Enter the user name to confirm.")],
    )

    @property
    def heir_name(self) -> str:
        """Who takes the applications over; empty if they are deleted."""
        return (self.heir.data or "") if self.applications.data == HAND_ON else ""
