"""Forms of the second-factor check."""

from wtforms import HiddenField, StringField
from wtforms.validators import DataRequired, Length

from forms.base import Form, without_edges

_LONGEST_TYPED = 64


class CodeForm(Form):
    """A code of an authenticator app, or a recovery code."""

    code = StringField(
        "Code",
        filters=[without_edges],
        validators=[
            DataRequired("Enter the code of your authenticator app, or a recovery code."),
            Length(max=_LONGEST_TYPED, message="This code is too long."),
        ],
    )


class PasskeyResponseForm(Form):
    """A signed response, which a script fills in."""

    credential = HiddenField()
