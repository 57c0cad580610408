"""The form of the profile page."""

from wtforms import EmailField, StringField
from wtforms.validators import InputRequired, Length

from domain.accounts.users import checked_email
from forms.base import Form, objections_beside_the_field, without_edges


class ProfileForm(Form):
    """How people and applications see somebody."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            InputRequired("Enter a name that people can call you by."),
            Length(max=100, message="A name may have at most 100 characters."),
        ],
    )
    email = EmailField(
        "E-mail address",
        filters=[without_edges],
        validators=[InputRequired("Enter your e-mail address.")],
    )

    def validate_email(self, field: EmailField) -> None:
        """Refuse what is no address."""
        with objections_beside_the_field():
            checked_email(field.data or "")
