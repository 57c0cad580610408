"""Forms of the second-factor check."""

from typing import Self

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
            DataRequired("Enter a code."),
            Length(max=_LONGEST_TYPED, message="This code is too long."),
        ],
    )

    def without_app(self) -> Self:
        """Ask for a recovery code only: the user has no authenticator app."""
        self.code.label.text = "Recovery code"
        return self


class PasskeyResponseForm(Form):
    """A signed response, which a script fills in."""

    credential = HiddenField()
