"""Finds the time zone that a name or abbreviation stands for.

Abbreviations are those of RFC 2822 section 4.3 and those that only one zone uses; ambiguous ones
(IST, BST and so on) are unknown. Names like Europe/Berlin are looked up in the system's time zone
database.
"""

import re
from datetime import UTC, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_HOURS = {
    0: "UTC UT GMT Z ZULU WET",
    1: "CET MEZ WEST",
    2: "CEST MESZ EET SAST",
    3: "EEST MSK TRT",
    5: "PKT",
    7: "WIB",
    8: "HKT AWST",
    9: "JST KST",
    9.5: "ACST",
    10: "AEST",
    10.5: "ACDT",
    11: "AEDT",
    12: "NZST",
    13: "NZDT",
    -3: "BRT ART",
    -4: "EDT",
    -5: "EST CDT",
    -6: "CST MDT",
    -7: "MST PDT",
    -8: "PST AKDT",
    -9: "AKST",
    -10: "HST",
}
_ABBREVIATIONS = {
    name: timezone(timedelta(hours=hours)) if hours else UTC
    for hours, names in _HOURS.items()
    for name in names.split()
}
_ZONE_NAME = re.compile(r"[A-Za-z_]+(?:/[A-Za-z0-9_+-]+){1,2}", re.ASCII)


@lru_cache(maxsize=256)
def find_zone(name: str) -> tzinfo | None:
    """Return the zone with this name, or None if it is unknown. Abbreviations ignore case."""
    if name.upper() in _ABBREVIATIONS:
        return _ABBREVIATIONS[name.upper()]
    if not _ZONE_NAME.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # no such zone, no zone at all, or a folder of them
        return None
