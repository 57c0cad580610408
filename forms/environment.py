"""The form for a new environment."""

from wtforms import StringField
from wtforms.validators import DataRequired, Length

from domain.alerts.environments import LONGEST_NAME
from forms.base import Form, without_edges


class EnvironmentForm(Form):
    """The name of the environment."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            DataRequired("Enter a name, such as production."),
            Length(max=LONGEST_NAME, message="A name may have at most 255 characters."),
        ],
    )
