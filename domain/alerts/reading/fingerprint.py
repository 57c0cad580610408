"""What makes two reports the same alert: SHA-256 over canonical JSON.

The kind of thing that was hashed goes in first, so that a hash of labels is never taken for a
hash of a payload that happens to look alike.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from domain.alerts.reading.body import LongNumber
from domain.alerts.reading.text import as_text, canonical_json, is_blank


def _hash(kind: bytes, value: Any) -> bytes:
    return sha256(b"alert fingerprint: " + kind + b"\0" + canonical_json(value)).digest()


def is_fingerprint(value: Any) -> bool:
    """Tell whether a value can identify an alert: a string, number or array that says something."""
    is_of_a_type = isinstance(value, str | int | float | list | LongNumber)
    return is_of_a_type and not isinstance(value, bool) and not is_blank(value)


def of_value(value: Any) -> bytes:
    """Return the fingerprint for what the sender calls one.

    Numbers count as the text that they are written with: tools that fill templates send 17 when
    something breaks and "17" when it is over. The order of an array matters.
    """
    if isinstance(value, list):
        return _hash(b"array", [as_text(item) for item in value])
    return _hash(b"text", as_text(value))


def of_payload(payload: Mapping[str, Any]) -> bytes:
    """Return the fingerprint of a payload; of that part which does not change between reports."""
    return _hash(b"payload", payload)


def of_labels(labels: Mapping[str, Any]) -> bytes:
    """Return the fingerprint of a series: all its labels, in any order."""
    return _hash(b"labels", labels)


def of_title(title: str) -> bytes:
    """Return the fingerprint of an alert that has nothing but a title."""
    return _hash(b"title", title)
