"""Forms to change second factors."""

from wtforms import HiddenField, PasswordField, StringField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.accounts.factors.passkeys import LONGEST_NAME
from forms.base import Form, without_edges
from forms.two_factor import CodeForm


class PasswordConfirmationForm(Form):
    """Confirmation with the current password."""

    current_password = PasswordField(
        "Current password", validators=[InputRequired("Enter your current password.")]
    )


class AuthenticatorForm(CodeForm, PasswordConfirmationForm):
    """The password, and a code that proves that the app has the key."""


class PasskeyNameForm(Form):
    """The name of a passkey."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            DataRequired("Enter a name to recognize the passkey by."),
            Length(max=LONGEST_NAME, message=f"A name may have at most {LONGEST_NAME} characters."),
        ],
    )


class NewPasskeyForm(PasskeyNameForm, PasswordConfirmationForm):
    """A name and the password, to request the options for a new passkey."""


class MadePasskeyForm(PasskeyNameForm):
    """A name and the new credential, which a script fills in."""

    credential = HiddenField()
