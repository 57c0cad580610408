"""Enumerations of words that people read in other words."""

from enum import StrEnum
from typing import Self


class Labelled(StrEnum):
    """An enumeration whose members have a name for people: `TLS = "tls", "TLS"`."""

    label: str
    #: A sentence, where there is one.
    explanation: str

    def __new__(cls, value: str, label: str = "", explanation: str = "") -> Self:
        """Make a member of its value and of what people read."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.label, member.explanation = label, explanation
        return member
