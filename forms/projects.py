"""Forms for projects, groups and environments."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from wtforms import BooleanField, IntegerField, RadioField, SelectField, StringField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, NumberRange

from domain.access.features import AccessLevel
from domain.accounts.names import MAX_DISPLAY_NAME_LENGTH, MAX_PATH_LENGTH, MAX_PATH_SEGMENT_LENGTH
from domain.alerts.environments import MAX_ENVIRONMENT_NAME_LENGTH as LONGEST_ENVIRONMENT
from domain.projects.namespace_changes import MAX_DESCRIPTION_LENGTH
from domain.projects.types import MAX_GRACE_HOURS
from domain.projects.views import GroupView, ProjectView
from domain.projects.visibility_sql import VISIBILITIES
from forms.base import Form, TextLineField, limit_length


def normalize_line_breaks(value: Any) -> Any:
    """Convert CRLF line breaks from browsers to LF, and strip surrounding whitespace."""
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else value


class NameAndDescriptionForm(Form):
    """The fields for the name and description of a group or project."""

    name = TextLineField(
        "Name", DataRequired("Enter a name."), limit_length(MAX_DISPLAY_NAME_LENGTH, "A name")
    )
    description = TextAreaField(
        "Description",
        filters=[normalize_line_breaks],
        validators=[limit_length(MAX_DESCRIPTION_LENGTH, "A description")],
    )


class GroupSettingsForm(NameAndDescriptionForm):
    """The form for a group's name, description and two-factor requirement."""

    require_two_factor_authentication = BooleanField("Require two-factor authentication")
    two_factor_grace_period = IntegerField(
        "Grace period in hours",
        validators=[
            InputRequired("Enter a number of hours, or 0 for no grace period."),
            NumberRange(0, MAX_GRACE_HOURS, f"Enter a number from 0 to {MAX_GRACE_HOURS}."),
        ],
    )

    @classmethod
    def from_group(cls, group: GroupView) -> "GroupSettingsForm":
        """Return a form with the submitted values, or with the group's current values."""
        return cls(obj=group)


class PathForm(Form):
    """The form for the last segment of a group's or project's path."""

    path = TextLineField(
        "Path",
        DataRequired("Enter a path."),
        limit_length(MAX_PATH_SEGMENT_LENGTH, "The last part of a path"),
    )


class ConfirmationForm(Form):
    """The form that confirms a transfer or deletion with the full path of the group or project."""

    confirmation = TextLineField("Full path", DataRequired("Enter the full path to confirm."))

    def confirms_path(self, path: str) -> bool:
        """Return whether the path was entered correctly.

        If the path is wrong, add an error to the form.
        """
        if (self.confirmation.data or "").strip("/").lower() == path.lower():
            return True
        self.add_error("confirmation", f"This path does not match. Enter {path} to confirm.")
        return False


class TransferForm(ConfirmationForm):
    """The form for the new parent group of a project or group."""

    to = StringField(
        "New group",
        filters=[lambda value: value.strip().strip("/") if isinstance(value, str) else value],
        validators=[limit_length(MAX_PATH_LENGTH, "A path")],
    )


def _strip_slashes(value: Any) -> Any:
    return value.strip().strip("/") if isinstance(value, str) else value


class GroupForm(Form):
    """The form for the path of a new group."""

    path = StringField(
        "Path",
        filters=[_strip_slashes],
        validators=[
            InputRequired("Enter a path, such as acme or acme/shops."),
            limit_length(MAX_PATH_LENGTH, "A path"),
        ],
    )


_ACCESS_LEVEL_CHOICES = [
    (AccessLevel.ENABLED.value, "On"),
    (AccessLevel.PRIVATE.value, "On, for members only"),
    (AccessLevel.DISABLED.value, "Off"),
]


class _VisibilityForm(Form):
    """The field for the visibility of a project."""

    visibility = RadioField(
        "Visibility",
        choices=[(word, word.capitalize()) for word in VISIBILITIES],
        default=VISIBILITIES[0],
        validators=[InputRequired("Choose who can see the project.")],
    )


class ProjectSettingsForm(NameAndDescriptionForm, _VisibilityForm):
    """The form for a project's name, description, features and visibility.

    Only owners can set the visibility.
    """

    # The other features have no pages.
    monitor_access_level = SelectField("Alerts and integrations", choices=_ACCESS_LEVEL_CHOICES)
    environments_access_level = SelectField(
        "Environments and deployments", choices=_ACCESS_LEVEL_CHOICES
    )
    releases_access_level = SelectField("Releases", choices=_ACCESS_LEVEL_CHOICES)

    @classmethod
    def from_project(cls, project: ProjectView) -> "ProjectSettingsForm":
        """Return a form with the submitted values, or with the project's current values."""
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
        if not project.has_owner_role:
            del form.visibility
        return form


class ProjectForm(_VisibilityForm):
    """The form for the group and name of a new project."""

    group = SelectField("Group", validators=[InputRequired("Choose a group.")])
    name = TextLineField(
        "Name",
        DataRequired("Enter a name, such as shop."),
        limit_length(MAX_DISPLAY_NAME_LENGTH, "A name"),
    )

    def __init__(
        self, *args: Any, groups: Iterable[str], own: Iterable[str], **kwargs: Any
    ) -> None:
        """Store the paths of the groups, and of the user's own namespace if it is available."""
        super().__init__(*args, **kwargs)
        mine = [(path, f"{path} (personal namespace)") for path in own]
        self.group.choices = [*((path, path) for path in groups), *mine]

    #: Name of the form field for the path, which is derived from the name.
    fields_of: ClassVar[Mapping[str, str]] = {"path": "name"}


class EnvironmentForm(Form):
    """The form for the name of an environment."""

    name = TextLineField(
        "Name",
        DataRequired("Enter a name, such as production."),
        limit_length(LONGEST_ENVIRONMENT, "A name"),
    )
