"""Which offset from UTC a zone's name means.

Abbreviations mean what RFC 2822 section 4.3 says, or the one zone that has them; those that several
zones have (IST, BST …) mean nothing here. Names like Europe/Berlin mean what the system's time zone
database says.
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
_PLACE = re.compile(r"[A-Za-z_]+(?:/[A-Za-z0-9_+-]+){1,2}", re.ASCII)


@lru_cache(maxsize=256)
def find_zone(name: str) -> tzinfo | None:
    """Return the zone of that name, whatever its case, if it is one that we know."""
    if name.upper() in _ABBREVIATIONS:
        return _ABBREVIATIONS[name.upper()]
    if not _PLACE.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # no such zone, no zone at all, or a folder of them
        return None
