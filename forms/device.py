"""The form for the user code of a device."""

from wtforms.validators import DataRequired, Length

from domain.oauth.devices import LONGEST_TYPED
from forms.base import Form, Line


class UserCodeForm(Form):
    """The form for the user code that the device shows."""

    user_code = Line(
        "Code",
        DataRequired("Enter the code that the device shows."),
        Length(max=LONGEST_TYPED, message="A code has eight letters."),
    )
