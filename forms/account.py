"""The form for a new account, for administrators."""

from wtforms import BooleanField, EmailField, StringField
from wtforms.validators import InputRequired, Length

from domain.accounts.administration import AccountDetails
from domain.accounts.names import LONGEST_NAME, check_username
from domain.accounts.users import checked_email
from forms.base import Form, objections_beside_the_field, without_edges


class AccountForm(Form):
    """The fields of a new account."""

    username = StringField(
        "User name",
        filters=[without_edges],
        validators=[InputRequired("Enter the name to sign in with.")],
    )
    email = EmailField(
        "E-mail address",
        filters=[without_edges],
        validators=[
            InputRequired("Enter their e-mail address."),
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
    is_admin = BooleanField("Administrator")

    @property
    def details(self) -> AccountDetails:
        """The details from the form."""
        return AccountDetails(
            username=self.username.data or "",
            email=self.email.data or "",
            name=self.name.data or "",
            is_admin=self.is_admin.data,
        )

    def validate_username(self, field: StringField) -> None:
        """Check the user name."""
        with objections_beside_the_field():
            check_username(field.data or "")

    def validate_email(self, field: EmailField) -> None:
        """Check the e-mail address."""
        with objections_beside_the_field():
            checked_email(field.data or "")
