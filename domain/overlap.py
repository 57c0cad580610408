"""The time in which a replaced credential still works, so that senders can be changed in turn."""

from datetime import timedelta
from enum import Enum


class Overlap(Enum):
    """How long an old credential stays good beside a new one; the name is what a form sends."""

    NOW = ("now", "Not at all: it stops working now", timedelta(0))
    HOUR = ("1h", "One hour", timedelta(hours=1))
    DAY = ("1d", "One day", timedelta(days=1))
    WEEK = ("7d", "7 days", timedelta(days=7))
    MONTH = ("30d", "30 days", timedelta(days=30))

    def __init__(self, key: str, words: str, length: timedelta) -> None:
        """Keep the key of forms, the words for people, and the length."""
        self.key = key
        self.words = words
        self.length = length

    @classmethod
    def of(cls, key: str) -> "Overlap":
        """Return the choice that a form sent; raise ValueError if it is none."""
        found = next((each for each in cls if each.key == key), None)
        if found is None:
            message = f"“{key}” is not one of {', '.join(each.key for each in cls)}."
            raise ValueError(message)
        return found
