"""Forms for sign-in, sign-up and password reset."""

from typing import Self

from wtforms import HiddenField, PasswordField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.accounts.passwords import LONGEST_PASSWORD
from forms.base import EmailLine, Form, Line, at_most


class ForgottenPasswordForm(Form):
    """The form that requests a password reset."""

    login = Line(
        "User name or email address",
        DataRequired("Enter your user name or email address."),
        at_most(320, "A user name or email address"),
    )


class SignUpForm(Form):
    """The form for the email address of a new account."""

    email = EmailLine(
        "Email address",
        DataRequired("Enter your email address."),
        at_most(255, "An email address"),
    )


class SignInForm(ForgottenPasswordForm):
    """The form for the login and the password."""

    password = PasswordField(
        "Password",
        validators=[
            InputRequired("Enter your password."),
            Length(max=LONGEST_PASSWORD, message="This password is too long."),
        ],
    )

    @property
    def needs_summary(self) -> bool:
        """True if an error belongs to neither of the two fields, which are always in view."""
        return bool(set(self.errors) - {"login", "password"})


_LONGEST_TYPED = 64


class CodeForm(Form):
    """The form for a code of an authenticator app or a recovery code."""

    code = Line(
        "Code",
        DataRequired("Enter a code."),
        Length(max=_LONGEST_TYPED, message="This code is too long."),
    )

    def without_app(self) -> Self:
        """Request only a recovery code, since the user has no authenticator app."""
        self.code.label.text = "Recovery code"
        return self


class PasskeyResponseForm(Form):
    """The form for a signed response, which a script fills in."""

    credential = HiddenField()
