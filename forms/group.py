"""The form for a new group."""

from typing import Any

from wtforms import StringField
from wtforms.validators import InputRequired, Length

from domain.accounts.names import LONGEST_PATH
from forms.base import Form


def _without_slashes(value: Any) -> Any:
    return value.strip().strip("/") if isinstance(value, str) else value


class GroupForm(Form):
    """The path of a new group."""

    path = StringField(
        "Path",
        filters=[_without_slashes],
        validators=[
            InputRequired("Enter a path, such as acme or acme/shops."),
            Length(max=LONGEST_PATH, message=f"A path may have at most {LONGEST_PATH} characters."),
        ],
    )
