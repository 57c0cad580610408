"""Computes the fingerprint that identifies an alert: a SHA-256 hash of canonical JSON.

The hashed data starts with the kind of the value, so that labels and a payload with the same
content have different fingerprints.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Literal

from domain.alerts.parsing.json_body import LongNumber
from domain.alerts.parsing.text_conversion import convert_to_text, format_canonical_json, is_blank

#: Kind of the hashed value. For a payload, only the part that is the same in all reports is hashed.
#: The order of labels does not matter. The title is used for alerts without labels and without a
#: fingerprint from the sender. `compute_sender_fingerprint` uses the last two kinds.
FingerprintKind = Literal["payload", "labels", "title", "array", "text"]


def compute_fingerprint(kind: FingerprintKind, value: object) -> bytes:
    """Return the fingerprint of a value that identifies an alert."""
    prefix = f"alert fingerprint: {kind}\0".encode()
    return sha256(prefix + format_canonical_json(value)).digest()


def is_usable_fingerprint(value: object) -> bool:
    """Return whether a value can identify an alert: a string, number or array that is not blank."""
    is_of_a_type = isinstance(value, str | int | float | list | LongNumber)
    return is_of_a_type and not isinstance(value, bool) and not is_blank(value)


def compute_sender_fingerprint(value: object) -> bytes:
    """Return the fingerprint for a value that the sender provides as a fingerprint.

    A number and its string have the same fingerprint, since tools that use templates send 17 when
    an alert fires and "17" when it recovers. The order of an array matters.
    """
    if isinstance(value, list):
        return compute_fingerprint("array", [convert_to_text(item) for item in value])
    return compute_fingerprint("text", convert_to_text(value))


def combine_with_monitor(found: bytes, monitor_id: int | None) -> bytes:
    """Combine a fingerprint with the monitor of its alert.

    Equal fingerprints in two monitors become different. Applying the function again returns the
    original fingerprint, so that an alert can be moved to another monitor. Monitor 0 and None have
    no effect.
    """
    if not monitor_id:
        return found
    # Events that open no alert, such as change events from PagerDuty, have an empty fingerprint.
    size = len(found)
    mask = int.from_bytes(_compute_monitor_mask(monitor_id)[:size], "big")
    return (int.from_bytes(found, "big") ^ mask).to_bytes(size, "big")


@lru_cache(maxsize=4096)
def _compute_monitor_mask(monitor_id: int) -> bytes:
    return sha256(f"alert monitor: {monitor_id}".encode()).digest()
