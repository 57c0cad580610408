"""Enumerations with display names."""

from enum import StrEnum
from typing import Self


class LabeledEnum(StrEnum):
    """An enumeration whose members have a display name: `TLS = "tls", "TLS"`."""

    label: str
    #: Explanation in one sentence, or an empty string.
    explanation: str

    def __new__(cls, value: str, label: str = "", explanation: str = "") -> Self:
        """Create a member with its value, display name and explanation."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.label, member.explanation = label, explanation
        return member
