"""The forms that change what proves who somebody is besides the password."""

from wtforms import HiddenField, PasswordField, StringField
from wtforms.validators import InputRequired, Length

from domain.accounts.factors.passkeys import LONGEST_NAME
from forms.base import Form, without_edges
from forms.two_factor import CodeForm


class PasswordProofForm(Form):
    """The current password: a browser that was left open is no proof."""

    current_password = PasswordField(
        "Current password", validators=[InputRequired("Enter your current password.")]
    )


class AuthenticatorForm(CodeForm, PasswordProofForm):
    """The password, and a code that shows that the app has the key."""


class PasskeyNameForm(Form):
    """What its owner calls a passkey."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            InputRequired("Give the passkey a name by which you will know it."),
            Length(max=LONGEST_NAME, message=f"A name may have at most {LONGEST_NAME} characters."),
        ],
    )


class NewPasskeyForm(PasskeyNameForm, PasswordProofForm):
    """A name and the password, for which the browser is told how to make a passkey."""


class MadePasskeyForm(PasskeyNameForm):
    """A name and what the authenticator made; a script fills it in."""

    credential = HiddenField()
