"""A short value that changes when something changes that a web page shows."""

from dataclasses import dataclass
from hashlib import blake2b

_MARK_BYTES = 12


@dataclass(frozen=True, kw_only=True)
class PageMark:
    """The mark of a page, and the number of open alerts in the title of its tab."""

    value: str
    #: Number of open alerts. None if the title has no number. A value above COUNT_LIMIT is a lower
    #: bound.
    open_alerts: int | None = None


def compute_mark(*values: object, open_alerts: int | None = None) -> PageMark:
    """Return the mark of some values, whose representations must not contain the current time."""
    digest = blake2b(repr(values).encode(), digest_size=_MARK_BYTES)
    return PageMark(value=digest.hexdigest(), open_alerts=open_alerts)
