"""The form for the user code of a device."""

from wtforms.validators import DataRequired, Length

from domain.oauth.device_authorizations import MAX_TYPED_CODE_LENGTH
from forms.base import Form, TextLineField


class UserCodeForm(Form):
    """The form for the user code that the device shows."""

    user_code = TextLineField(
        "Code",
        DataRequired("Enter the code that the device shows."),
        Length(max=MAX_TYPED_CODE_LENGTH, message="A code has eight letters."),
    )
