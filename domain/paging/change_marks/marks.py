"""Computes marks of web pages: digests of the data that a page depends on."""

from dataclasses import dataclass
from hashlib import blake2b

_MARK_BYTES = 12


@dataclass(frozen=True, kw_only=True)
class PageMark:
    """The mark of a page, and the number of open alerts shown in the tab title."""

    value: str
    #: Number of open alerts. None if the title has no number. More than COUNT_LIMIT is a lower
    #: bound.
    open_alerts: int | None = None


def compute_mark(*values: object, open_alerts: int | None = None) -> PageMark:
    """Return the mark of a page that depends on the given values.

    The representations of the values must not contain the current time, because the mark would then
    always change.
    """
    digest = blake2b(repr(values).encode(), digest_size=_MARK_BYTES)
    return PageMark(value=digest.hexdigest(), open_alerts=open_alerts)
