"""The parts of a project that can be turned off, or be for members alone."""

from collections.abc import Mapping
from enum import StrEnum

from domain.errors import ForbiddenError, NotFoundError


class AccessLevel(StrEnum):
    """Who may use a part of a project, as far as visibility and role allow."""

    DISABLED = "disabled"
    PRIVATE = "private"
    ENABLED = "enabled"


class Feature(StrEnum):
    """A part of a project; the value names its field of the API before `_access_level`."""

    RELEASES = "releases"
    #: Environments and deployments.
    ENVIRONMENTS = "environments"
    FEATURE_FLAGS = "feature_flags"
    INFRASTRUCTURE = "infrastructure"
    #: Alerts, integrations and what receives alerts.
    MONITOR = "monitor"

    @property
    def label(self) -> str:
        """Its name in a sentence."""
        return "Monitoring" if self is Feature.MONITOR else self.replace("_", " ").capitalize()


def check_feature(
    path: str, levels: Mapping[Feature, AccessLevel], feature: Feature, *, is_member: bool
) -> None:
    """Raise ForbiddenError if a part is turned off, NotFoundError if it is for members alone."""
    level = levels[feature]
    if level is AccessLevel.DISABLED:
        message = f"{feature.label} is turned off in {path}."
        raise ForbiddenError(message)
    if level is AccessLevel.PRIVATE and not is_member:
        message = "Page not found, or you do not have access."
        raise NotFoundError(message)
