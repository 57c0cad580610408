"""The form to change a password."""

from typing import Any

from wtforms import BooleanField, PasswordField
from wtforms.validators import EqualTo, InputRequired

from domain.accounts.passwords import check_password_strength
from forms.base import Form, objections_beside_the_field


class PasswordForm(Form):
    """The current password, and the new one twice."""

    current_password = PasswordField(
        "Current password", validators=[InputRequired("Enter your current password.")]
    )
    new_password = PasswordField(
        "New password", validators=[InputRequired("Enter a new password.")]
    )
    repeat_password = PasswordField(
        "Confirm new password",
        validators=[
            InputRequired("Enter the new password again."),
            EqualTo("new_password", "The new passwords do not match."),
        ],
    )

    end_applications = BooleanField("Revoke all authorized applications")
    revoke_tokens = BooleanField("Revoke all my personal access tokens")

    def __init__(self, *args: Any, username: str, email: str, minimum: int, **kwargs: Any) -> None:
        """Take the user and the least length."""
        super().__init__(*args, **kwargs)
        self.username = username
        self.email = email
        self.minimum = minimum

    def validate_new_password(self, field: PasswordField) -> None:
        """Check the strength of the password."""
        with objections_beside_the_field():
            check_password_strength(
                field.data or "", username=self.username, email=self.email, minimum=self.minimum
            )
