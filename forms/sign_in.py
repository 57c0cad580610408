"""The form of the sign-in page."""

from wtforms import PasswordField, StringField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.accounts.passwords import LONGEST_PASSWORD
from forms.base import Form, without_edges


class SignInForm(Form):
    """Login and password."""

    login = StringField(
        "User name or e-mail address",
        filters=[without_edges],
        validators=[
            DataRequired("Enter your user name or e-mail address."),
            Length(max=320, message="A user name or e-mail address has at most 320 characters."),
        ],
    )
    password = PasswordField(
        "Password",
        validators=[
            InputRequired("Enter your password."),
            Length(max=LONGEST_PASSWORD, message="This password is too long."),
        ],
    )

    @property
    def needs_summary(self) -> bool:
        """Whether an error belongs to no field: others stand beside one of two, always in view."""
        return bool(set(self.errors) - {"login", "password"})
