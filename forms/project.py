"""The forms that make a project and change one."""

from collections.abc import Iterable
from typing import Any

from wtforms import RadioField, SelectField, StringField
from wtforms.validators import InputRequired, Length

from domain.accounts.names import LONGEST_NAME, check_path
from domain.projects.access import VISIBILITIES
from forms.base import Form, objections_beside_the_field, without_edges

_NO_RESERVED_WORDS: frozenset[str] = frozenset()


class ProjectSettingsForm(Form):
    """Who sees a project."""

    visibility = RadioField(
        "Visibility",
        choices=[(word, word.capitalize()) for word in VISIBILITIES],
        default=VISIBILITIES[0],
        validators=[InputRequired("Choose who sees the project.")],
    )


class ProjectForm(ProjectSettingsForm):
    """Where a new project lives and what it is called."""

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
        """Take the paths of the groups to choose from."""
        super().__init__(*args, **kwargs)
        self.group.choices = [(path, path) for path in groups]

    @property
    def path(self) -> str:
        """Full path of the project."""
        return f"{self.group.data}/{self.name.data}"

    def validate_name(self, field: StringField) -> None:
        """Refuse a name that cannot be part of a path."""
        # The group exists already, so its first part is none that routes begin with.
        with objections_beside_the_field():
            check_path(field.data or "", reserved=_NO_RESERVED_WORDS)
