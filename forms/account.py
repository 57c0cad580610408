"""The forms for a new account and to change one, for administrators."""

from collections.abc import Mapping
from typing import Any, ClassVar

from wtforms import BooleanField, EmailField, SelectField, StringField
from wtforms.validators import DataRequired, Length

from domain.accounts.names import LONGEST_NAME
from domain.accounts.types import AccountBody, AccountChangeBody
from domain.time_zones import zone_names
from forms.base import Form, without_edges


class _AccountFields(Form):
    """What an account has from its beginning."""

    username = StringField(
        "User name",
        filters=[without_edges],
        validators=[DataRequired("Enter the name to sign in with.")],
    )
    email = EmailField(
        "E-mail address",
        filters=[without_edges],
        validators=[
            DataRequired("Enter their e-mail address."),
            Length(max=255, message="An e-mail address may have at most 255 characters."),
        ],
    )
    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            Length(max=LONGEST_NAME, message=f"A name may have at most {LONGEST_NAME} characters.")
        ],
    )

    is_email_confirmed = BooleanField("Mark the address as verified")

    fields_of: ClassVar[Mapping[str, str]] = {
        "admin": "is_admin",
        "skip_confirmation": "is_email_confirmed",
    }


class AccountForm(_AccountFields):
    """The fields of a new account."""

    is_admin = BooleanField("Administrator")

    @property
    def body(self) -> AccountBody:
        """The new account; raises InvalidParametersError."""
        return self.read(
            AccountBody,
            admin=self.is_admin.data,
            skip_confirmation=self.is_email_confirmed.data,
            force_random_password=True,
        )


class AccountChangeForm(_AccountFields):
    """The fields of an account that an administrator changes."""

    time_zone = SelectField("Time zone", validate_choice=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Offer all time zones."""
        super().__init__(*args, **kwargs)
        self.time_zone.choices = [(name, name) for name in zone_names()]

    @property
    def body(self) -> AccountChangeBody:
        """The new values; raises InvalidParametersError."""
        return self.read(
            AccountChangeBody,
            name=self.name.data or self.username.data,
            skip_confirmation=self.is_email_confirmed.data,
        )
