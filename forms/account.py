"""Account forms: creation, profile, password, second factors, and deletion."""

from collections.abc import Mapping
from typing import Any, ClassVar

from wtforms import (
    BooleanField,
    HiddenField,
    PasswordField,
    RadioField,
    StringField,
)
from wtforms.validators import (
    DataRequired,
    EqualTo,
    InputRequired,
    Optional,
    ValidationError,
)

from domain.accounts.factors.passkeys import MAX_PASSKEY_NAME_LENGTH as LONGEST_PASSKEY_NAME
from domain.accounts.names import MAX_DISPLAY_NAME_LENGTH
from domain.accounts.types import AccountBody, AccountChangeBody, ErasureBody
from forms.base import EmailLineField, Form, TextLineField, TimeZoneField, limit_length
from forms.sign_in import SecondFactorCodeForm


class _AccountFields(Form):
    """Fields shared by the forms for new and existing accounts."""

    username = TextLineField("Username", DataRequired("Enter a username."))
    email = EmailLineField(
        "Email address",
        DataRequired("Enter an email address."),
        limit_length(255, "An email address"),
    )
    name = TextLineField("Name", limit_length(MAX_DISPLAY_NAME_LENGTH, "A name"))

    is_email_confirmed = BooleanField("Mark the address as verified")

    fields_of: ClassVar[Mapping[str, str]] = {
        "admin": "is_admin",
        "skip_confirmation": "is_email_confirmed",
    }


class AccountForm(_AccountFields):
    """The form that administrators use to create an account."""

    is_admin = BooleanField("Administrator")

    @property
    def entered_account(self) -> AccountBody:
        """The entered values of the new account.

        Raise InvalidParametersError for invalid values.
        """
        return self.build_entered_body(
            AccountBody,
            admin=self.is_admin.data,
            skip_confirmation=self.is_email_confirmed.data,
            force_random_password=True,
        )


class AccountChangeForm(_AccountFields):
    """The form that administrators use to change an account."""

    time_zone = TimeZoneField()

    @property
    def entered_changes(self) -> AccountChangeBody:
        """The new values of the account.

        Raise InvalidParametersError for invalid values.
        """
        return self.build_entered_body(
            AccountChangeBody,
            name=self.name.data or self.username.data,
            skip_confirmation=self.is_email_confirmed.data,
        )


class ProfileForm(Form):
    """The form for the display name, email address and time zone."""

    name = TextLineField(
        "Name",
        DataRequired("Enter your name."),
        limit_length(MAX_DISPLAY_NAME_LENGTH, "A name"),
    )
    email = EmailLineField("Email address", DataRequired("Enter your email address."))

    time_zone = TimeZoneField()
    current_password = PasswordField("Current password")


class PasswordConfirmationForm(Form):
    """The form that confirms an action with the current password."""

    current_password = PasswordField(
        "Current password", validators=[InputRequired("Enter your current password.")]
    )


class NewPasswordForm(Form):
    """The form for a new password, entered twice, with options to revoke access."""

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


class NewAccountForm(NewPasswordForm):
    """The form for a new account whose email address is already confirmed."""

    username = TextLineField("Username", DataRequired("Enter a username."))
    name = TextLineField("Name", limit_length(MAX_DISPLAY_NAME_LENGTH, "A name"))
    new_password = PasswordField("Password", validators=[InputRequired("Enter a password.")])
    repeat_password = PasswordField(
        "Confirm password",
        validators=[
            InputRequired("Enter the password again."),
            EqualTo("new_password", "The passwords do not match."),
        ],
    )

    fields_of: ClassVar[Mapping[str, str]] = {"password": "new_password"}


class PasswordForm(PasswordConfirmationForm, NewPasswordForm):
    """The form for the current password and a new password, entered twice."""


class AuthenticatorForm(SecondFactorCodeForm, PasswordConfirmationForm):
    """The form for the current password and a code from the authenticator app."""


class PasskeyNameForm(Form):
    """The form for the name of a passkey."""

    name = TextLineField(
        "Name",
        DataRequired("Enter a name for the passkey."),
        limit_length(LONGEST_PASSKEY_NAME, "A name"),
    )


class NewPasskeyForm(PasskeyNameForm, PasswordConfirmationForm):
    """The form that requests options for a new passkey: a name and the current password."""


class CreatedPasskeyForm(PasskeyNameForm):
    """The form for a new passkey: its name, and the credential that a script fills in."""

    credential = HiddenField()


_TRANSFER, _DELETE = "hand_on", "delete"


class AccountDeletionForm(Form):
    """The form that deletes an account and transfers or deletes its applications."""

    applications = RadioField(
        "Applications",
        choices=[(_TRANSFER, "Transfer to a new owner"), (_DELETE, "Delete")],
        default=_TRANSFER,
        validators=[Optional()],
    )
    heir = TextLineField("New owner")
    confirmation = TextLineField("Username", DataRequired("Enter the username to confirm."))

    def __init__(self, *args: Any, username: str, **kwargs: Any) -> None:
        """Store the username that has to be entered."""
        super().__init__(*args, **kwargs)
        self.username = username

    def validate_confirmation(self, field: StringField) -> None:
        """Check that the entered text is the username.

        Raise ValidationError for any other text.
        """
        if (field.data or "").lower() != self.username.lower():
            raise ValidationError(f"The username does not match {self.username}.")

    @property
    def erasure_options(self) -> ErasureBody:
        """The options for the applications of the erased account: a new owner, or deletion."""
        is_handed_on = self.applications.data == _TRANSFER
        heir = (self.heir.data or "") if is_handed_on else ""
        return ErasureBody(
            applications_to=heir, delete_applications=self.applications.data == _DELETE
        )
