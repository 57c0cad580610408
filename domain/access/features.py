"""The parts of a project that can be turned off, or be for members alone."""

from collections.abc import Mapping
from enum import StrEnum


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
    #: Alerts, incidents, integrations and what receives alerts.
    MONITOR = "monitor"

    @property
    def label(self) -> str:
        """Its name in a sentence."""
        return "Monitoring" if self is Feature.MONITOR else self.replace("_", " ").capitalize()


#: By how the room of the API (the first part of an operation's name) or the blueprint of pages
#: begins.
_ROOMS: Mapping[str, Feature] = {
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


def feature_of(room: str) -> Feature | None:
    """Return the part of a project that a room belongs to, or None."""
    found = (feature for beginning, feature in _ROOMS.items() if room.startswith(beginning))
    return next(found, None)
