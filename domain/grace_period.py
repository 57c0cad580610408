"""The grace period of a replaced credential, in which senders can change to the new one."""

from datetime import timedelta
from enum import Enum


class GracePeriod(Enum):
    """How long a replaced credential stays valid; `key` is what a form sends."""

    NOW = ("now", "Not at all: it stops working immediately", timedelta(0))
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
    def of(cls, key: str) -> "GracePeriod":
        """Return the choice that a form sent; raise ValueError if it is none."""
        found = next((each for each in cls if each.key == key), None)
        if found is None:
            message = f"“{key}” is not one of {', '.join(each.key for each in cls)}."
            raise ValueError(message)
        return found
