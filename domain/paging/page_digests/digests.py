"""Computes digests of the data that web pages depend on."""

from dataclasses import dataclass
from hashlib import blake2b

_MARK_BYTES = 12


@dataclass(frozen=True, kw_only=True)
class PageDigest:
    """The digest of a web page, and the number of open alerts shown in the tab title."""

    value: str
    #: Number of open alerts. None if the title has no number. A number above COUNT_LIMIT is a lower
    #: bound.
    open_alerts: int | None = None


def compute_page_digest(*values: object, open_alerts: int | None = None) -> PageDigest:
    """Return the digest of a web page that depends on the given values.

    The representations of the values must not contain the current time. Otherwise, the digest would
    be different each time.
    """
    digest = blake2b(repr(values).encode(), digest_size=_MARK_BYTES)
    return PageDigest(value=digest.hexdigest(), open_alerts=open_alerts)
