"""The form of the profile page."""

from typing import Any

from wtforms import EmailField, PasswordField, SelectField, StringField
from wtforms.validators import DataRequired, Length

from domain.accounts.names import LONGEST_NAME
from domain.accounts.users import checked_email
from domain.time_zones import check_zone, zone_names
from forms.base import Form, objections_beside_the_field, without_edges


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

    def __init__(self, *args: Any, present_email: str, **kwargs: Any) -> None:
        """Take the current e-mail address, whose change requires the password."""
        super().__init__(*args, email=present_email, **kwargs)
        self.time_zone.choices = [(name, name) for name in zone_names()]
        self.present_email = present_email

    def validate_email(self, field: EmailField) -> None:
        """Check the e-mail address."""
        with objections_beside_the_field():
            checked_email(field.data or "")

    def validate_time_zone(self, field: SelectField) -> None:
        """Check the time zone."""
        with objections_beside_the_field():
            check_zone(field.data or "")

    @property
    def has_new_email(self) -> bool:
        """Whether the e-mail address was changed."""
        return checked_email(self.email.data or "") != self.present_email
