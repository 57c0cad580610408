"""The types of integrations. The type alone decides the format that a body is read as."""

from enum import StrEnum


class IntegrationType(StrEnum):
    """The type of an integration, by its stored value."""

    HTTP = "http"
    PROMETHEUS = "prometheus"
    EXTERNAL = "external"

    @property
    def label(self) -> str:
        """The name that pages show."""
        return _LABELS[self]


_LABELS = {
    IntegrationType.HTTP: "HTTP Endpoint",
    IntegrationType.PROMETHEUS: "Prometheus Alertmanager",
    IntegrationType.EXTERNAL: "External on-call tool",
}
