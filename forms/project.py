"""Forms to create a project and change it."""

from collections.abc import Iterable
from typing import Any

from wtforms import RadioField, SelectField, StringField
from wtforms.validators import InputRequired, Length

from domain.accounts.names import LONGEST_NAME, check_path
from domain.projects.grants import VISIBILITIES
from forms.base import Form, objections_beside_the_field, without_edges

_NO_RESERVED_WORDS: frozenset[str] = frozenset()


class ProjectSettingsForm(Form):
    """The visibility of a project."""

    visibility = RadioField(
        "Visibility",
        choices=[(word, word.capitalize()) for word in VISIBILITIES],
        default=VISIBILITIES[0],
        validators=[InputRequired("Choose who sees the project.")],
    )


class ProjectForm(ProjectSettingsForm):
    """The group and the name of a new project."""

    group = SelectField("Group", validators=[InputRequired("Choose the group that it is in.")])
    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            InputRequired("Enter a name, such as shop."),
            Length(max=LONGEST_NAME, message=f"A name may have at most {LONGEST_NAME} characters."),
        ],
    )

    def __init__(self, *args: Any, groups: Iterable[str], **kwargs: Any) -> None:
        """Take the paths of the available groups."""
        super().__init__(*args, **kwargs)
        self.group.choices = [(path, path) for path in groups]

    @property
    def path(self) -> str:
        """The full path of the project."""
        return f"{self.group.data}/{self.name.data}"

    def validate_name(self, field: StringField) -> None:
        """Check the name."""
        # The group exists, so its first segment is not reserved.
        with objections_beside_the_field():
            check_path(field.data or "", reserved=_NO_RESERVED_WORDS)
