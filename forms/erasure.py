"""The form to delete an account, for administrators."""

from typing import Any

from wtforms import RadioField, StringField
from wtforms.validators import DataRequired, Optional, ValidationError

from domain.accounts.types import ErasureBody
from forms.base import Form, without_edges

_HAND_ON, _DELETE = "hand_on", "delete"


class ErasureForm(Form):
    """The user name as confirmation, and what to do with the applications."""

    applications = RadioField(
        "Applications",
        choices=[(_HAND_ON, "Transfer to a new owner"), (_DELETE, "Delete")],
        default=_HAND_ON,
        validators=[Optional()],
    )
    heir = StringField("New owner", filters=[without_edges])
    confirmation = StringField(
        "User name",
        filters=[without_edges],
        validators=[DataRequired("Enter the user name to confirm.")],
    )

    def __init__(self, *args: Any, username: str, **kwargs: Any) -> None:
        """Take the user name that has to be entered."""
        super().__init__(*args, **kwargs)
        self.username = username

    def validate_confirmation(self, field: StringField) -> None:
        """Compare what was entered with the user name."""
        if (field.data or "").lower() != self.username.lower():
            message = f"This is not the user name {self.username}."
            raise ValidationError(message)

    @property
    def body(self) -> ErasureBody:
        """What becomes of the applications."""
        is_handed_on = self.applications.data == _HAND_ON
        heir = (self.heir.data or "") if is_handed_on else ""
        return ErasureBody(
            applications_to=heir, delete_applications=self.applications.data == _DELETE
        )
