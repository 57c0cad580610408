"""The form to change a password."""

from wtforms import BooleanField, PasswordField
from wtforms.validators import EqualTo, InputRequired

from forms.base import Form


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
