"""The grace period during which a replaced credential stays valid."""

from datetime import datetime, timedelta
from enum import Enum


class GracePeriod(Enum):
    """The time for which a replaced credential stays valid.

    `key` is the form value.
    """

    NOW = ("now", "Not at all: it stops working immediately", timedelta(0))
    HOUR = ("1h", "One hour", timedelta(hours=1))
    DAY = ("1d", "One day", timedelta(days=1))
    WEEK = ("7d", "7 days", timedelta(days=7))
    MONTH = ("30d", "30 days", timedelta(days=30))

    def __init__(self, key: str, words: str, length: timedelta) -> None:
        """Store the form value, the label, and the length."""
        self.key = key
        self.words = words
        self.length = length

    def compute_end(self, now: datetime) -> datetime | None:
        """Return the end of the grace period, or None if there is no grace period."""
        return now + self.length if self.length else None

    @classmethod
    def from_key(cls, key: str) -> "GracePeriod":
        """Return the grace period for a form value.

        Raise ValueError for an unknown value.
        """
        found = next((each for each in cls if each.key == key), None)
        if found is None:
            raise ValueError(f'"{key}" is not one of {", ".join(each.key for each in cls)}.')
        return found
