"""Policies for the bodies of alert requests."""

from domain.alerts.formats.base import AlertFormat, ParserSettings
from web.settings.environment import Settings


def build_parser_settings(current: Settings) -> ParserSettings:
    """Return the policy for parsing the bodies of alert requests."""
    return ParserSettings(
        nesting_limit=current.alert_nesting_limit,
        automatic_fingerprint=current.generic_alert_fingerprinting,
    )


def get_body_limit(current: Settings, body_format: AlertFormat) -> int:
    """Return the exclusive size limit in bytes for a body of the given format."""
    if body_format.accepts_groups:
        return current.metrics_body_limit_bytes
    return current.alert_body_limit_bytes
