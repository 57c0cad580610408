"""Computes the fingerprint that identifies an alert: SHA-256 over canonical JSON.

The hash begins with the kind of its input, so labels and a payload with the same content have
different fingerprints.
"""

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256

from domain.alerts.reading.body import LongNumber
from domain.alerts.reading.text import as_text, canonical_json, is_blank


def _hash(kind: bytes, value: object) -> bytes:
    return sha256(b"alert fingerprint: " + kind + b"\0" + canonical_json(value)).digest()


def is_fingerprint(value: object) -> bool:
    """Return whether a value can identify an alert: a string, number or array that is not blank."""
    is_of_a_type = isinstance(value, str | int | float | list | LongNumber)
    return is_of_a_type and not isinstance(value, bool) and not is_blank(value)


def of_value(value: object) -> bytes:
    """Return the fingerprint for the sender's own fingerprint value.

    A number equals its text: tools that fill templates send 17 when an alert fires and "17" when it
    recovers. The order of an array matters.
    """
    if isinstance(value, list):
        return _hash(b"array", [as_text(item) for item in value])
    return _hash(b"text", as_text(value))


#: Of the part of a payload that is the same in each of its reports.
of_payload: Callable[[Mapping[str, object]], bytes] = partial(_hash, b"payload")
#: Of a set of labels; their order does not matter.
of_labels: Callable[[Mapping[str, object]], bytes] = partial(_hash, b"labels")
#: Of an alert that has neither labels nor a fingerprint of its own.
of_title: Callable[[str], bytes] = partial(_hash, b"title")
