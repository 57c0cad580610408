"""The forms for a new account and to change one, for administrators."""

from typing import Any

from wtforms import BooleanField, EmailField, SelectField, StringField
from wtforms.validators import DataRequired, Length

from domain.accounts.administration import AccountChange, AccountDetails
from domain.accounts.names import LONGEST_NAME, check_username
from domain.accounts.users import UserView, checked_email
from domain.time_zones import check_zone, zone_names
from forms.base import Form, objections_beside_the_field, without_edges


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

    def validate_username(self, field: StringField) -> None:
        """Check the user name."""
        with objections_beside_the_field():
            check_username(field.data or "")

    def validate_email(self, field: EmailField) -> None:
        """Check the e-mail address."""
        with objections_beside_the_field():
            checked_email(field.data or "")


class AccountForm(_AccountFields):
    """The fields of a new account."""

    is_admin = BooleanField("Administrator")

    @property
    def details(self) -> AccountDetails:
        """The details from the form."""
        return AccountDetails(
            username=self.username.data or "",
            email=self.email.data or "",
            name=self.name.data or "",
            is_admin=self.is_admin.data,
            is_email_confirmed=self.is_email_confirmed.data,
        )


class AccountChangeForm(_AccountFields):
    """The fields of an account that an administrator changes."""

    time_zone = SelectField("Time zone", validate_choice=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Offer all time zones."""
        super().__init__(*args, **kwargs)
        self.time_zone.choices = [(name, name) for name in zone_names()]

    @classmethod
    def of(cls, user: UserView) -> "AccountChangeForm":
        """Return the form with the present values of an account, or those of the request."""
        return cls(
            username=user.username, email=user.email, name=user.name, time_zone=user.time_zone
        )

    @property
    def change(self) -> AccountChange:
        """The new values."""
        return AccountChange(
            username=self.username.data,
            email=self.email.data,
            name=self.name.data or self.username.data,
            time_zone=self.time_zone.data,
            is_email_confirmed=self.is_email_confirmed.data,
        )

    def validate_time_zone(self, field: SelectField) -> None:
        """Check the time zone."""
        with objections_beside_the_field():
            check_zone(field.data or "")
