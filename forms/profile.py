"""The form of the profile page."""

from typing import Any

from wtforms import EmailField, PasswordField, SelectField, StringField
from wtforms.validators import DataRequired, Length

from domain.accounts.names import LONGEST_NAME
from domain.time_zones import zone_names
from forms.base import Form, without_edges


class ProfileForm(Form):
    """The display name, the e-mail address and the time zone."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            DataRequired("Enter a name that people can call you by."),
            Length(max=LONGEST_NAME, message=f"A name may have at most {LONGEST_NAME} characters."),
        ],
    )
    email = EmailField(
        "E-mail address",
        filters=[without_edges],
        validators=[DataRequired("Enter your e-mail address.")],
    )

    time_zone = SelectField("Time zone", validate_choice=False)
    current_password = PasswordField("Current password")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Offer all time zones."""
        super().__init__(*args, **kwargs)
        self.time_zone.choices = [(name, name) for name in zone_names()]
