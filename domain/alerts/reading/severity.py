"""Reads the words that senders use for a severity."""

from collections.abc import Mapping

from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.text import excerpt, is_blank

GENERIC_WORDS: Mapping[str, Severity] = {severity.value: severity for severity in Severity}

_ACCEPTED = {
    Severity.CRITICAL: ("critical", "s1", "p1", "emergency", "fatal"),
    Severity.HIGH: ("high", "s2", "p2", "major", "page"),
    Severity.MEDIUM: ("medium", "s3", "p3", "error", "alert"),
    Severity.LOW: ("low", "s4", "p4", "warn", "warning"),
    Severity.INFO: ("info", "s5", "p5", "debug", "information", "notice"),
}

METRICS_WORDS: Mapping[str, Severity] = {
    word: severity for severity, words in _ACCEPTED.items() for word in words
}


def read_severity(value: object, words: Mapping[str, Severity]) -> tuple[Severity, str]:
    """Return the severity for a sender's word, and the reason as a text for people.

    Case and surrounding spaces do not matter. A missing or unknown word means critical.
    """
    if is_blank(value):
        return Severity.CRITICAL, "No severity: treated as critical"
    severity = words.get(value.strip().lower()) if isinstance(value, str) else None
    if severity is None:
        return Severity.CRITICAL, f"Unknown severity {excerpt(value)}: treated as critical"
    return severity, f"severity is {excerpt(value)}"
