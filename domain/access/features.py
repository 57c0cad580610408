"""Features of a project that can be turned off or limited to members."""

from collections.abc import Mapping
from enum import StrEnum


class AccessLevel(StrEnum):
    """The level of access to a feature: disabled, private (members only) or enabled.

    The project's visibility and the user's role also apply.
    """

    DISABLED = "disabled"
    PRIVATE = "private"
    ENABLED = "enabled"


class Feature(StrEnum):
    """A feature that can be turned off or limited to members in each project.

    The name of the API field is the value followed by `_access_level`.
    """

    RELEASES = "releases"
    #: Environments and deployments.
    ENVIRONMENTS = "environments"
    FEATURE_FLAGS = "feature_flags"
    INFRASTRUCTURE = "infrastructure"
    #: Alerts, incidents, integrations and receivers of alerts.
    MONITOR = "monitor"

    @property
    def label(self) -> str:
        """The name of the feature in messages."""
        return "Monitoring" if self is Feature.MONITOR else self.replace("_", " ").capitalize()


#: Features by the name prefix of API resources and page blueprints.
_FEATURES_BY_PREFIX: Mapping[str, Feature] = {
    "alert": Feature.MONITOR,
    "test_alerts": Feature.MONITOR,
    "incident": Feature.MONITOR,
    "integration": Feature.MONITOR,
    "deliveries": Feature.MONITOR,
    "escalation": Feature.MONITOR,
    "on_call": Feature.MONITOR,
    "silences": Feature.MONITOR,
    "maintenance_windows": Feature.MONITOR,
    "flap_settings": Feature.MONITOR,
    "heartbeat": Feature.MONITOR,
    "environment": Feature.ENVIRONMENTS,
    "deployment": Feature.ENVIRONMENTS,
    "release": Feature.RELEASES,
}


def find_feature(room: str) -> Feature | None:
    """Return the feature that an API resource belongs to, or None."""
    found = (
        feature for beginning, feature in _FEATURES_BY_PREFIX.items() if room.startswith(beginning)
    )
    return next(found, None)
