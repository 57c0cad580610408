"""Forms to sign in."""

from typing import Self

from wtforms import HiddenField, PasswordField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.accounts.passwords import LONGEST_PASSWORD
from forms.base import EmailLine, Form, Line, at_most


class ForgottenPasswordForm(Form):
    """Whose password is forgotten."""

    login = Line(
        "User name or e-mail address",
        DataRequired("Enter your user name or e-mail address."),
        at_most(320, "A user name or e-mail address"),
    )


class SignUpForm(Form):
    """The address of a new account."""

    email = EmailLine(
        "E-mail address",
        DataRequired("Enter your e-mail address."),
        at_most(255, "An e-mail address"),
    )


class SignInForm(ForgottenPasswordForm):
    """Login and password."""

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


_LONGEST_TYPED = 64


class CodeForm(Form):
    """A code of an authenticator app, or a recovery code."""

    code = Line(
        "Code",
        DataRequired("Enter a code."),
        Length(max=_LONGEST_TYPED, message="This code is too long."),
    )

    def without_app(self) -> Self:
        """Ask for a recovery code only: the user has no authenticator app."""
        self.code.label.text = "Recovery code"
        return self


class PasskeyResponseForm(Form):
    """A signed response, which a script fills in."""

    credential = HiddenField()
