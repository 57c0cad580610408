"""Forms to create a project and change it."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from wtforms import RadioField, SelectField, StringField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.access.features import AccessLevel
from domain.accounts.names import LONGEST_NAME
from domain.projects.grants import VISIBILITIES
from domain.projects.views import ProjectView
from forms.base import Form, without_edges
from forms.namespaces import NameAndDescription

_LEVELS = [
    (AccessLevel.ENABLED.value, "On"),
    (AccessLevel.PRIVATE.value, "On, for members only"),
    (AccessLevel.DISABLED.value, "Off"),
]


class _VisibilityForm(Form):
    """The visibility of a project."""

    visibility = RadioField(
        "Visibility",
        choices=[(word, word.capitalize()) for word in VISIBILITIES],
        default=VISIBILITIES[0],
        validators=[InputRequired("Choose who sees the project.")],
    )


class ProjectSettingsForm(NameAndDescription, _VisibilityForm):
    """Name and description of a project, which of its parts are on, and for owners who sees it."""

    # The other parts of the API have no pages.
    monitor_access_level = SelectField("Alerts and integrations", choices=_LEVELS)
    environments_access_level = SelectField("Environments and deployments", choices=_LEVELS)
    releases_access_level = SelectField("Releases", choices=_LEVELS)

    @classmethod
    def of(cls, project: ProjectView) -> "ProjectSettingsForm":
        """Return the form with the present values of a project, or those of the request."""
        levels = {
            f"{feature}_access_level": level.value
            for feature, level in project.access_levels.items()
        }
        form = cls(
            name=project.name,
            description=project.description,
            visibility=project.visibility,
            **levels,
        )
        if not project.is_owned:
            del form.visibility
        return form


class ProjectForm(_VisibilityForm):
    """The group and the name of a new project."""

    group = SelectField("Group", validators=[InputRequired("Choose a group.")])
    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            DataRequired("Enter a name, such as shop."),
            Length(max=LONGEST_NAME, message=f"A name may have at most {LONGEST_NAME} characters."),
        ],
    )

    def __init__(self, *args: Any, groups: Iterable[str], **kwargs: Any) -> None:
        """Take the paths of the available groups."""
        super().__init__(*args, **kwargs)
        self.group.choices = [(path, path) for path in groups]

    #: It is the last part of the path as well.
    fields_of: ClassVar[Mapping[str, str]] = {"path": "name"}
