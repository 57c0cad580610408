"""Policies for the bodies of alert requests."""

from domain.alerts.formats.base import Format, Reading
from web.settings.reader import Settings


def reading(current: Settings) -> Reading:
    """Return the policy for parsing the bodies of alert requests."""
    return Reading(
        nesting_limit=current.alert_nesting_limit,
        automatic_fingerprint=current.generic_alert_fingerprinting,
    )


def body_limit(current: Settings, body_format: Format) -> int:
    """Return the number of bytes that a body of the given format must stay below."""
    if body_format.takes_groups:
        return current.metrics_body_limit_bytes
    return current.alert_body_limit_bytes
