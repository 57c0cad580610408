"""The form for a new group."""

from typing import Any

from wtforms import StringField
from wtforms.validators import InputRequired, Length

from domain.accounts.names import LONGEST_PATH, check_path
from forms.base import Form, objections_beside_the_field


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

    def __init__(self, *args: Any, reserved: frozenset[str], **kwargs: Any) -> None:
        """Take the reserved first segments."""
        super().__init__(*args, **kwargs)
        self.reserved = reserved

    def validate_path(self, field: StringField) -> None:
        """Check the path."""
        with objections_beside_the_field():
            check_path(field.data or "", reserved=self.reserved)
