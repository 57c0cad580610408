"""Describes the device or program that a User-Agent header identifies."""

import re

_MAX_NAME_LENGTH = 40
#: Programs in order of precedence, since most browsers also name their predecessors.
_PROGRAMS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
    ("Wget/", "Wget"),
    ("git/", "Git"),
    ("python", "a Python program"),
    ("Go-http-client", "a Go program"),
    ("okhttp", "a Java or Kotlin program"),
    ("Java/", "a Java program"),
    ("node", "a Node.js program"),
    ("PowerShell", "PowerShell"),
)
_SYSTEMS = (
    ("Android TV", "Android TV"),
    ("SmartTV", "a television"),
    ("SMART-TV", "a television"),
    ("Web0S", "a television"),
    ("Tizen", "a Tizen device"),
    ("AppleTV", "Apple TV"),
    ("PlayStation", "a PlayStation"),
    ("Xbox", "an Xbox"),
    ("iPhone", "an iPhone"),
    ("iPad", "an iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "a Mac"),
    ("Darwin", "a Mac"),
    ("Linux", "Linux"),
)
_NAME_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9 ._-]*")


def describe_device(user_agent: str | None) -> str:
    """Return a description such as `Chrome on Windows`.

    The User-Agent header is not verified.
    """
    text = user_agent or ""
    program, system = _find_first_match(_PROGRAMS, text), _find_first_match(_SYSTEMS, text)
    if program and system:
        return f"{program} on {system}"
    return program or system or _parse_program_name(text) or "an unknown device"


def _find_first_match(table: tuple[tuple[str, str], ...], text: str) -> str | None:
    folded = text.lower()
    return next((words for mark, words in table if mark.lower() in folded), None)


def _parse_program_name(text: str) -> str | None:
    """Return the text before the version, such as `Weather Station` in `Weather Station/2.1`."""
    found = _NAME_PATTERN.match(text)
    return found.group().strip()[:_MAX_NAME_LENGTH] if found else None
