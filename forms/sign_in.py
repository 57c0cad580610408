"""Forms for sign-in, sign-up and password reset."""

from typing import Self

from wtforms import HiddenField, PasswordField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.accounts.passwords import MAX_PASSWORD_LENGTH
from forms.base import EmailLineField, Form, TextLineField, limit_length


class ForgottenPasswordForm(Form):
    """The form that requests a password reset."""

    login = TextLineField(
        "Username or email address",
        DataRequired("Enter your username or email address."),
        limit_length(320, "A username or email address"),
    )


class SignUpForm(Form):
    """The form for the email address of a new account."""

    email = EmailLineField(
        "Email address",
        DataRequired("Enter your email address."),
        limit_length(255, "An email address"),
    )


class SignInForm(ForgottenPasswordForm):
    """The form for the login and the password."""

    password = PasswordField(
        "Password",
        validators=[
            InputRequired("Enter your password."),
            Length(max=MAX_PASSWORD_LENGTH, message="This password is too long."),
        ],
    )

    @property
    def needs_error_summary(self) -> bool:
        """True if an error does not belong to one of the two fields, which are always visible."""
        return bool(set(self.errors) - {"login", "password"})


_MAX_CODE_LENGTH = 64


class SecondFactorCodeForm(Form):
    """The form for a code from an authenticator app, or for a recovery code."""

    code = TextLineField(
        "Code",
        DataRequired("Enter a code."),
        Length(max=_MAX_CODE_LENGTH, message="This code is too long."),
    )

    def require_recovery_code(self) -> Self:
        """Request only a recovery code, since the user has no authenticator app."""
        self.code.label.text = "Recovery code"
        return self


class PasskeyResponseForm(Form):
    """The form for a signed passkey response, which a script fills in."""

    credential = HiddenField()
