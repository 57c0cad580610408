"""Forms for projects, groups and environments."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from wtforms import BooleanField, IntegerField, RadioField, SelectField, StringField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, NumberRange

from domain.access.features import AccessLevel
from domain.accounts.names import LONGEST_NAME, LONGEST_PATH, LONGEST_SEGMENT
from domain.alerts.environments import LONGEST_NAME as LONGEST_ENVIRONMENT
from domain.projects.creation import LONGEST_DESCRIPTION
from domain.projects.types import LONGEST_GRACE_HOURS
from domain.projects.views import GroupView, ProjectView
from domain.projects.visibility_sql import VISIBILITIES
from forms.base import Form, Line, at_most


def with_plain_breaks(value: Any) -> Any:
    """Return a text with normalized line breaks, since browsers send CRLF."""
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else value


class NameAndDescription(Form):
    """The fields for the name and description of a group or project."""

    name = Line("Name", DataRequired("Enter a name."), at_most(LONGEST_NAME, "A name"))
    description = TextAreaField(
        "Description",
        filters=[with_plain_breaks],
        validators=[at_most(LONGEST_DESCRIPTION, "A description")],
    )


class GroupSettingsForm(NameAndDescription):
    """The form for a group's name, description and two-factor requirement."""

    require_two_factor_authentication = BooleanField("Require two-factor authentication")
    two_factor_grace_period = IntegerField(
        "Grace period in hours",
        validators=[
            InputRequired("Enter a number of hours, or 0 for no grace period."),
            NumberRange(0, LONGEST_GRACE_HOURS, f"Enter a number from 0 to {LONGEST_GRACE_HOURS}."),
        ],
    )

    @classmethod
    def of(cls, group: GroupView) -> "GroupSettingsForm":
        """Return the form with the current values of a group, or the values of the request."""
        return cls(obj=group)


class PathForm(Form):
    """The form for the last segment of a group's or project's path."""

    path = Line(
        "Path",
        DataRequired("Enter a path."),
        at_most(LONGEST_SEGMENT, "The last part of a path"),
    )


class ConfirmationForm(Form):
    """The full path of a group or project, to confirm its transfer or deletion."""

    confirmation = Line("Full path", DataRequired("Enter the full path to confirm."))

    def confirms(self, path: str) -> bool:
        """Return whether the path was entered correctly; otherwise add an error."""
        if (self.confirmation.data or "").strip("/").lower() == path.lower():
            return True
        self.object_to("confirmation", f"This path does not match. Enter {path} to confirm.")
        return False


class TransferForm(ConfirmationForm):
    """The form for the new group of a project or group."""

    to = StringField(
        "New group",
        filters=[lambda value: value.strip().strip("/") if isinstance(value, str) else value],
        validators=[at_most(LONGEST_PATH, "A path")],
    )


def _without_slashes(value: Any) -> Any:
    return value.strip().strip("/") if isinstance(value, str) else value


class GroupForm(Form):
    """The form for the path of a new group."""

    path = StringField(
        "Path",
        filters=[_without_slashes],
        validators=[
            InputRequired("Enter a path, such as acme or acme/shops."),
            at_most(LONGEST_PATH, "A path"),
        ],
    )


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
        validators=[InputRequired("Choose who can see the project.")],
    )


class ProjectSettingsForm(NameAndDescription, _VisibilityForm):
    """The form for a project's name, description and features, and for owners its visibility."""

    # The other features have no pages.
    monitor_access_level = SelectField("Alerts and integrations", choices=_LEVELS)
    environments_access_level = SelectField("Environments and deployments", choices=_LEVELS)
    releases_access_level = SelectField("Releases", choices=_LEVELS)

    @classmethod
    def of(cls, project: ProjectView) -> "ProjectSettingsForm":
        """Return the form with the current values of a project, or the values of the request."""
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
    """The form for the group and name of a new project."""

    group = SelectField("Group", validators=[InputRequired("Choose a group.")])
    name = Line(
        "Name", DataRequired("Enter a name, such as shop."), at_most(LONGEST_NAME, "A name")
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

    name = Line(
        "Name",
        DataRequired("Enter a name, such as production."),
        at_most(LONGEST_ENVIRONMENT, "A name"),
    )
