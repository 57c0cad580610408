"""The types of integrations. The type decides how a body is read, never the body itself."""

from enum import StrEnum


class IntegrationType(StrEnum):
    """What an integration is."""

    HTTP = "http"
    PROMETHEUS = "prometheus"
    EXTERNAL = "external"

    @property
    def label(self) -> str:
        """The words of the page."""
        return _LABELS[self]


_LABELS = {
    IntegrationType.HTTP: "HTTP Endpoint",
    IntegrationType.PROMETHEUS: "Prometheus Alertmanager",
    IntegrationType.EXTERNAL: "External on-call tool",
}
